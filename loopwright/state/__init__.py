"""What a thread keeps: its channels, its transcript and repair, the database, the log, the lease.

All SQLite knowledge of the package is in here. Nothing here decides what a run does next.
"""
