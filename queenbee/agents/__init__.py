"""The configuration of coding agents: what `queen setup` writes, and how it is taken out again."""
