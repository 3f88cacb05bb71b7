"""How models are reached: one contract, its adapters, the table of providers, the wire form.

Nothing here knows the loop; client libraries are imported at first use.
"""
