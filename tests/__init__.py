"""A package, so that a folder of the same name among installed packages is not taken for it."""
