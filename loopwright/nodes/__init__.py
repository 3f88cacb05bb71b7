"""The steps of a run, one node a file: free functions from state and run to an update.

Where a decision leads is in `graph.edges`; what a step is given in `runs`.
"""
