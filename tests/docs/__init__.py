"""Tests of what the documentation says: its examples run, its drawings are the code's."""
