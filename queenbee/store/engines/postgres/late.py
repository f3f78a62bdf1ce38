"""psycopg, imported when something of it is used: that takes as long as a whole command.

Importing this module fails where psycopg is not installed.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    import psycopg as psycopg
else:
    if "psycopg" not in sys.modules and PathFinder.find_spec("psycopg") is None:
        raise ModuleNotFoundError("No module named 'psycopg'", name="psycopg")

    class _Late:
        def __getattr__(self, name: str) -> object:
            return getattr(import_module("psycopg"), name)

    psycopg = _Late()
