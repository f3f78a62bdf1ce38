"""Phase gates: rules that must pass before the next phase begins. docs/gates.md."""
