"""The records of a hive on a branch of a git remote: exchanging them, and confirming grants."""
