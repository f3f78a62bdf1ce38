"""The SQLite index over one large ledger: a cache that you can delete at any time. ADR 0006."""
