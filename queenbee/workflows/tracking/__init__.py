"""The tracker's issues, written by us or by the program that owns them."""
