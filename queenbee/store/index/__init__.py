"""The SQLite index over one large ledger: a cache that can be deleted at any time. ADR 0006.

`tables` holds the schema, `intake` brings the index up to date, `records` answers questions,
`search` finds words in messages.
"""
