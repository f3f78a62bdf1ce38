"""A clone's memory of its hive: one SQLite file, which can be made again from the ledgers."""
