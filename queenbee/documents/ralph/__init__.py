"""Ralph beads: one unit of work with its Definition of Done. docs/ralph-beads.md."""
