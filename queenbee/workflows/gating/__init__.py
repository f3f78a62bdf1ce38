"""Phase gates: made, shown, and checked."""
