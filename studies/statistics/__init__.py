"""Studies of bias, ties and joint guarantees."""
