"""What git's own files say of worktrees, branches and ignored files. Starts no git process."""
