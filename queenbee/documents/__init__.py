"""Documents that people and agents write, read and validated: plans, beads, gates, sessions.

Each kind of document is a package of its own. The modules here are what they share: findings, JSON
and Markdown readers, fields, graphs, and rows of the issue tracker's file.
"""
