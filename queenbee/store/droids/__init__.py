"""What this machine knows of droids: names, sessions, signs of life, what they were told."""
