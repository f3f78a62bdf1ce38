"""A turn at writing, and what carries lines between clones: PostgreSQL, or nothing but ledgers."""
