"""Keeping a hive in order: diagnosis, indexes, rotation, statistics."""
