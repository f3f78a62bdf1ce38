"""Ralph beads: one unit of work with its Definition of Done. docs/ralph-beads.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee._lazy import exports

if TYPE_CHECKING:
    from queenbee.documents.ralph.bead_files import BeadFolders as BeadFolders
    from queenbee.documents.ralph.bead_files import find_bead as find_bead
    from queenbee.documents.ralph.bead_loop import run_bead as run_bead
    from queenbee.documents.ralph.ralph_bead import validate_bead as validate_bead
    from queenbee.documents.ralph.verify import complete_bead as complete_bead
    from queenbee.documents.ralph.verify import verify_bead as verify_bead

exports(
    __name__,
    {
        "ralph_bead": "validate_bead",
        "bead_loop": "run_bead",
        "bead_files": "BeadFolders find_bead",
        "verify": "complete_bead verify_bead",
    },
)
