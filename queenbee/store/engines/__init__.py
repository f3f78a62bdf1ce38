"""Where a hive's lines are kept: in files, or in a database."""
