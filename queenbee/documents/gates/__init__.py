"""Phase gates: rules that must pass before the next phase begins. docs/gates.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee._lazy import exports

if TYPE_CHECKING:
    from queenbee.documents.gates.gate import add_rule as add_rule
    from queenbee.documents.gates.gate import history as history
    from queenbee.documents.gates.gate import new_gate as new_gate
    from queenbee.documents.gates.gate import remove_rule as remove_rule
    from queenbee.documents.gates.gate import validate_gate as validate_gate
    from queenbee.documents.gates.gate_files import check_gate as check_gate
    from queenbee.documents.gates.gate_files import create_gate as create_gate
    from queenbee.documents.gates.gate_run import run_gate as run_gate

exports(
    __name__,
    {
        "gate": "add_rule history new_gate remove_rule validate_gate",
        "gate_run": "run_gate",
        "gate_files": "check_gate create_gate",
    },
)
