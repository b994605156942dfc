"""Studies of the families of learners."""
