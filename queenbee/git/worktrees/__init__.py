"""Worktrees of droids: made, looked after, and what is left in them."""
