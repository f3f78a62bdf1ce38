"""`queen start`: starts a team of agents, each in a worktree, and looks after them."""
