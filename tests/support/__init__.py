"""What several test folders share and what is no fake: those are in `loopwright.testing`.

Each module is one thing, named by what it is.
"""
