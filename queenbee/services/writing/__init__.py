"""One turn at writing, and what may be written."""
