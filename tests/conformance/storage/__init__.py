"""The drivers of cases about stored threads: what is run on a database, and what is found in it.

Which case is driven by what is said in `kinds.checkpoint`.
"""
