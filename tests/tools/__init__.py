"""Tests of the tools, one module for each of theirs."""
