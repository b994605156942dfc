"""Studies of probes below the cut, and of what they can tell."""
