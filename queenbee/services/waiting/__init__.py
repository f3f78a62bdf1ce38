"""Waiting for one's turn: who waits for what, and for a turn at landing."""

LANDING_RECORD = "queenbee-landing"
"""The file, in the git directory of a worktree, with its last landing: `landing_record`."""
