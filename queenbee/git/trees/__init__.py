"""The files of one worktree, where git alone does not say all of them."""
