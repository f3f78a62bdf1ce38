"""One subject each over one open hive: messages, assignments, reservations, issues, droids."""
