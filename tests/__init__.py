"""The tests: one module for each module of the package, named by the behaviour they show."""
