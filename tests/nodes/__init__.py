"""Tests of `loopwright.nodes`, module for module."""
