"""What may be in a commit: no secrets, nothing too large, and records as they were read."""
