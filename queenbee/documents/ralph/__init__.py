"""Ralph beads: one unit of work with its Definition of Done. docs/ralph-beads.md.

`bead` has the document, `store` its files, `issues` beads as issues, `verify` runs and completes a
bead's checks once, and `run` is the loop of an agent and the checks.
"""
