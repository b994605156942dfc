"""Studies of the promises: how often each holds, and what it costs."""
