"""The command line: `sayso`, and the same program as `kubectl sayso`."""
