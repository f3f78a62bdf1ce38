"""Code hosts: which one a remote is on, the user's own client of it, and the issues there."""
