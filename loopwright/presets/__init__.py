"""The systems that Loopwright can stand in for, one short file each.

The core knows none of them.
"""
