"""The command line, run as a process of its own on real files and databases."""
