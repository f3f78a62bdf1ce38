"""The library: everything that `queen` does, as calls on an open hive that return values.

`hive` adds to the services what needs git: the loop (`next`, `land`, `complete`), the tracker's
issues for writing, and worktrees. `queen` is built on exactly these calls. What a call did, or why
it was refused, is a value or an error with attributes; only `cli` turns it into words.
"""

from __future__ import annotations

from queenbee._lazy import exports

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from queenbee.library.issues import TrackedIssues as TrackedIssues
    from queenbee.library.landings import LandingResult as LandingResult
    from queenbee.library.plans import CheckedPlan as CheckedPlan
    from queenbee.library.plans import PlanGraph as PlanGraph
    from queenbee.library.plans import Plans as Plans
    from queenbee.library.schemas import schema as schema
    from queenbee.library.schemas import schema_names as schema_names
    from queenbee.library.worktrees import Worktrees as Worktrees

exports(
    __name__,
    {
        "issues": "TrackedIssues",
        "landings": "LandingResult",
        "plans": "CheckedPlan PlanGraph Plans",
        "schemas": "schema schema_names",
        "worktrees": "Worktrees",
    },
)
