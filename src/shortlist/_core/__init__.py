"""The ground floor: helpers that every package uses, and that are private to the library."""
