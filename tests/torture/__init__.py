"""Long random runs that prove the promises of `docs/reliability.md`.

    python -m tests.torture git --seconds 60
    python -m tests.torture kills --count 400
    python -m tests.torture linear --operations 100000
    python -m tests.torture converge --seconds 120
    python -m tests.torture faults
    python -m tests.torture land --landings 100
    python -m tests.torture remote --operations 20000
    python -m tests.torture storm --storm-seconds 600
    python -m tests.torture fuzz --executions 1000000
    python -m tests.torture fuzz-documents --executions 100000
    python -m tests.torture all

Each prints its figures and leaves with 1 where a promise did not hold. The tests beside these
modules run the same things for a second or two.
"""

from __future__ import annotations

import os
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""Where the modules are that all tests share."""

if TESTS not in sys.path:
    sys.path.insert(0, TESTS)
