"""What a run does, told to whoever watches it: a trace in a file, metrics, OpenTelemetry's spans.

An observer never changes what a run does. `recording` makes the steps, the others take them.
"""
