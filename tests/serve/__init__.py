"""Tests of `loopwright.serve`. That all entrances behave alike is shown in `tests.entrances`."""
