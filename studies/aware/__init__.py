"""Studies of learning for the capacity."""
