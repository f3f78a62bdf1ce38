"""Ralph beads: one unit of work with its Definition of Done. docs/ralph-beads.md.

`bead` has the document, `store` its files, `issues` beads as issues, `verify` runs and completes a
bead's checks once, and `run` is the loop of an agent and the checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee._lazy import exports

if TYPE_CHECKING:
    from queenbee.documents.ralph.bead import validate_bead as validate_bead
    from queenbee.documents.ralph.run import run_bead as run_bead
    from queenbee.documents.ralph.store import BeadFolders as BeadFolders
    from queenbee.documents.ralph.store import find_bead as find_bead
    from queenbee.documents.ralph.verify import complete_bead as complete_bead
    from queenbee.documents.ralph.verify import verify_bead as verify_bead

__getattr__, __dir__, __all__ = exports(
    __name__,
    {
        "bead": "validate_bead",
        "run": "run_bead",
        "store": "BeadFolders find_bead",
        "verify": "complete_bead verify_bead",
    },
)
