"""Recorded traces, replayed."""
