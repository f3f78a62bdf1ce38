"""Bounds of what the documents may ask for: here, so that reading one loads nothing that runs."""

DEFAULT_TIMEOUT_S = 300
"""Of one check whose document names none."""

LONGEST_S = 7 * 24 * 3600
"""No wait is longer than a week; it also keeps a document's number within what a clock takes."""

MAX_CHECKS = 500
"""Of one bead or gate: the record of a run is one line of a ledger, which holds 1 MiB."""
