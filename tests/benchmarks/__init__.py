"""Tests of the benchmarks in a small form: that they measure, and that nothing fails under load."""
