"""What the promises cost, and how often they are broken."""
