"""Seeded random faults of a real server, and what a run makes of each: `python -m tests.faults`."""
