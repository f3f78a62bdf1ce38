"""The command `queen-hook`: what an agent runs before it edits a file, in few milliseconds."""
