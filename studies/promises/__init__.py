"""Studies of promises."""
