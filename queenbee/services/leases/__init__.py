"""Reservations of files: granting, waiting, releasing, and asking who holds a path.

`reservations` is the service. `granting` writes leases, `live` finds those that overlap or cover,
`paths` reads what a user typed, and `edits` leases what agents change.
"""
