"""Plays the scenarios that were recorded from Pi's agent core on Loopwright, and compares traces.

The format and what must be equal is said in the traces' own SCENARIOS.md; see `__main__`.
"""
