"""The processes of agents: each with all that it starts, and signs of life of it."""
