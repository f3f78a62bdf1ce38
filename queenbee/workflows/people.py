"""What wants a person, with what documents say: the gates that have failed."""

from __future__ import annotations

from collections.abc import Iterator

from queenbee.core.text import mentioned, one_line, quotation
from queenbee.documents.folders import gates_dir
from queenbee.documents.gates.gate import validate_gate
from queenbee.documents.gates.gate_files import list_gates
from queenbee.documents.gates.judgement import judge, latest_results
from queenbee.services.telling import people
from queenbee.services.telling.people import Want
from queenbee.workflows.complete_hive import Hive

_CHARS = 80


def wants(hive: Hive) -> Iterator[Want]:
    """Yields what wants `human`, or the actor, now."""
    yield from people.wants(hive)
    unseen = sorted(each.key for each in hive.documents.unseen_commands())
    if unseen:
        text = f"commands wait for you to look at them, {len(unseen)} in all: queen config trust"
        yield Want("trust", "".join(unseen), text)
    gates, _ = list_gates(gates_dir(hive.layout))
    for gate in gates:
        if any(each.severity == "error" for each in validate_gate(gate.document)):
            continue  # The doctor reports it.
        verdict = judge(gate.document)
        if verdict.status == "failed":
            # The next run, with the same result, is another failure.
            ran = max(
                str(each.get("validated_at")) for each in latest_results(gate.document).values()
            )
            name = "/".join(gate.key)
            why = quotation(one_line(verdict.blocking[0], _CHARS)) if verdict.blocking else ""
            text = f"gate {mentioned(one_line(name, _CHARS))} failed: {why}"
            yield Want("gate", f"{name}:{ran}", text, about=name)
