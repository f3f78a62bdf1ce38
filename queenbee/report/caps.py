"""How much of each thing a report shows: a page must open quickly however long the history is."""

from __future__ import annotations

ISSUES = 200
"""Open issues in the list."""
NODES = 120
"""Issues in the graph: more cannot be followed by eye."""
EDGES = 400
BENDS = 600
"""Places at which edges of the graph pass a layer."""
PHASES = 60
BARS = 400
DROIDS = 40
"""Droids in the time line, each with its own rows."""
ROWS = 8
"""Rows of one droid: so many things that it had at the same time."""
WAITS = 30
CONFLICTS = 50
TURNS = 30
PATTERNS = 500
"""Leases that are compared with each other to find files that were handed over."""
SUBJECTS = 60
"""Beads and gates with checks."""
RUNS = 12
"""Runs of the checks of one bead or gate."""
FAILED = 4
"""Checks that did not pass, of one run."""
REASON = 160
"""Characters of a check's name and reason."""
RECORDS = 2_000
"""Runs that are read at all."""
MESSAGES = 600
"""The newest messages, of which threads are made."""
THREADS = 40
SAID = 20
"""Messages of one thread."""
BODY = 2_000
"""Characters of one message."""
BODIES = 200_000
"""Characters of all messages together."""
TEXT = 300
"""Characters of any other text."""
WORDS = 20
"""Files, reasons or names in one cell."""
