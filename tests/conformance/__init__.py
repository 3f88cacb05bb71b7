"""Runs the conformance vectors and the report cases on the package: one driver per suite or kind.

The drivers import `loopwright` only; what is expected stands in the data, never in here.
"""
