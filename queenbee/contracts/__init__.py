"""Documents that agents hand over, validated and run: plans, beads, sessions, gates, checks."""
