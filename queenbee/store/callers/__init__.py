"""Who has started this process, as far as its environment and the processes above it tell."""
