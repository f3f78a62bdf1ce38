"""The SQLite index over one large ledger: a cache that you can delete at any time. ADR 0006.

`indexed` answers questions and `search` finds words in messages. `tables` has the schema;
`folding` folds lines into the tables, and `intake` brings them up to date.
"""
