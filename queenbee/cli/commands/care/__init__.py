"""Commands that set up a hive, look after it, and connect agents with it."""
