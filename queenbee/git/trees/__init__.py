"""The files of worktrees, where git alone does not say all of them."""
