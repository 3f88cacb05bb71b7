"""A real language model on this machine, and our agent against it: `make local-model`."""
