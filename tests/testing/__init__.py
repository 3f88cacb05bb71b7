"""The stand-ins that are shipped for tests."""
