"""Worktrees of droids: made, looked after and removed."""
