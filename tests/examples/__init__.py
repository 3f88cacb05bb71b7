"""Every example runs, as a user would run it, with nothing but this machine to talk to."""
