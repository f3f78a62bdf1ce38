"""The last step of a landing: the target and the main worktree move, or are put right again."""
