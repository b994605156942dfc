"""What `shortlist fit` finds on tables that nobody tuned it for."""
