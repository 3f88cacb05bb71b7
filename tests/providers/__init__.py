"""How models are asked and understood: streams, failures, names, the wire form."""
