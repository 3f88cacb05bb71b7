"""Tests of `loopwright.state`, module for module."""
