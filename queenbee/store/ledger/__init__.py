"""Append-only files of lines: the tracked ledger, the journal behind it, and the archive."""
