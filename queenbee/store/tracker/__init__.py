"""The tracker as the memory of a clone keeps it: its rows, and where its issues stand."""
