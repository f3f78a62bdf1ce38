"""Append-only files of lines: the tracked ledger, the journal behind it, and the archive.

`codec` decides which bytes are a usable line, `journal` and `ledger` read and append, and `batch`
is what a reader gets. `rotation` moves closed records to segments, which `archive` reads.
"""
