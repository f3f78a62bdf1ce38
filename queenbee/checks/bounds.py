"""Limits of what documents may ask for. Separate, so that reading one loads no code that runs."""

DEFAULT_TIMEOUT_S = 300
"""The timeout of a check whose document names none."""

LONGEST_S = 7 * 24 * 3600
"""No wait is longer than a week, which also keeps a document's number within a clock's range."""

MAX_CHECKS = 500
"""The limit of one bead or gate: the record of a run is one ledger line, of 1 MiB at most."""
