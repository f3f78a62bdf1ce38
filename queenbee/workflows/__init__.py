"""Where documents meet assignments: the whole Hive, completing, imports, views and doctor."""
