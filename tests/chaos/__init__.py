"""Kills: processes that work on one thread are killed, again and again, and nothing may be lost.

`python -m tests.chaos` (or `make chaos`) does it on a large scale; the tests do it on a small one.
"""
