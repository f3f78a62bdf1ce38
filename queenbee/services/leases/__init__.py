"""Reservations of files: granting, waiting, releasing, and asking who holds a path."""
