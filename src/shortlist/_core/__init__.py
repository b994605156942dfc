"""The ground floor: what every package stands on, and nobody outside needs."""
