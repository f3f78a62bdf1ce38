"""The program that owns the tracker: how it is called, asked for its rows, and told of claims."""
