"""Rules that are computable from their arguments: no files, clock, environment or subprocess."""
