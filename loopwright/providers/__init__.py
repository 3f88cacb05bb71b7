"""How models are reached: one contract, its adapters, the routing of names, the wire form.

Nothing here knows the loop; heavy client libraries are imported at first use.
"""
