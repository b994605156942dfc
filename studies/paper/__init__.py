"""Results of `shortlist reproduce`, summarised."""
