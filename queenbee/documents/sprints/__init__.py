"""Sprint beads: issues that carry a sprint's team, history and verdict. docs/sprint-beads.md."""
