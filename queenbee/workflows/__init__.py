"""Where documents meet assignments: the complete hive, and what commands do with its documents."""

from __future__ import annotations

from queenbee._lazy import exports

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from queenbee.workflows.completing import complete as complete
    from queenbee.workflows.loop import run as run
    from queenbee.workflows.running import run_gate as run_gate
    from queenbee.workflows.running import verify as verify

exports(
    __name__,
    {
        "completing": "complete",
        "loop": "run",
        "running": "run_gate verify",
    },
)
