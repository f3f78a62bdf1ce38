"""Waiting for one's turn: who waits for what, and for a turn at landing."""
