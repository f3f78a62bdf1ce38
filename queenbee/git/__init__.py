"""The only place that runs git: worktrees, hooks, the guard, sync."""
