"""The engine that keeps a hive's lines in PostgreSQL, for agents on several machines. ADR 0030."""
