"""Kind `dup-id`: a stored transcript whose calls share ids, loaded by the next run, twice.

It is a transcript like any other; the keys that only these cases use stand in `checks` too.
"""

from tests.conformance.kinds import transcript

drive = transcript.drive
