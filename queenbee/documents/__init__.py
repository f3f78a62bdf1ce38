"""Documents that people and agents write, read and validated: plans, beads, gates, sessions.

Each kind is a package of its own; the modules here are what they share.
"""

from __future__ import annotations

from queenbee._lazy import exports

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from queenbee.documents.agents import list_agents as list_agents
    from queenbee.documents.findings import Finding as Finding
    from queenbee.documents.issue_rows import RowImport as RowImport
    from queenbee.documents.issue_rows import render_differences as render_differences

exports(
    __name__,
    {
        "agents": "list_agents",
        "findings": "Finding",
        "issue_rows": "RowImport render_differences",
    },
)
