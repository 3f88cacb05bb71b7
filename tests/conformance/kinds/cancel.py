"""Kind `cancel`: a script in which the user cancels or a reader leaves, played on one thread.

It is a script like any other; the steps and keys that only these cases use stand there too.
"""

from tests.conformance.kinds import steering

drive = steering.drive
