"""One turn at writing, what may be written, and forks beside it."""
