"""PostgreSQL as the carrier of a hive, for agents on several machines. ADR 0030."""
