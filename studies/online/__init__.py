"""Studies of control on a stream."""
