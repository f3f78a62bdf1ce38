"""The commands of `queen`, one module per noun."""
