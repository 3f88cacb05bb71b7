"""The graph of a run: its assembly, its edges, the guard around its nodes and the entrance to it.

What a single step does is in `nodes`; what is stored in `state`.
"""
