"""A consistency checker that knows QueenBee from its pages alone.

    python -m tests.checker files --operations 20000
    python -m tests.checker remote --operations 20000
    python -m tests.checker database --operations 20000
    python -m tests.checker broken

Droids in threads call `queen` as anybody does, note what it answered, and are killed, stopped and
cut off meanwhile (`droids`, `worlds`). What they noted is then judged by laws that the pages
promise (`laws`). `broken` breaks the product on purpose, and the laws must notice each time.
Nothing here imports `queenbee`.
"""

from __future__ import annotations

import os
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(TESTS)

if TESTS not in sys.path:
    sys.path.insert(0, TESTS)
