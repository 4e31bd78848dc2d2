"""Studies: measurements of the method itself, each against the theory."""
