"""Tests of `loopwright.graph`, module for module."""
