"""The reproduction of the paper (`python -m studies.paper`), and its results."""
