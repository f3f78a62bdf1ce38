"""The places of a hive in which beads are worked on and gates are run.

Checks run at the top of the working tree one is in; beads, gates, evidence and records are the
hive's, whatever the worktree.
"""

from __future__ import annotations

import os
import time
import zlib
from contextlib import ExitStack, contextmanager

from queenbee.checks.verification import slug
from queenbee.documents import folders as places
from queenbee.documents.gates.run import GatePlace
from queenbee.documents.ralph.bead import Unmet
from queenbee.documents.ralph.issues import hive_bead_folders
from queenbee.documents.ralph.verify import Workplace
from queenbee.errors import Busy
from queenbee.services.secrets import LooksLikeSecret, refuse_secrets
from queenbee.store import setup
from queenbee.store.lock import LongLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from typing import Any

    from queenbee.checks.engine import Progress
    from queenbee.services.hive import Services
    from queenbee.workflows.hive import Hive

KIND = "verifications"
_LEFT_OUT = "left out, since it seems to hold a secret: the evidence has it"


def workplace(
    hive: Hive,
    env: Mapping[str, str],
    *,
    on_progress: Callable[[Progress], None] | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Workplace:
    """Returns where the beads of a hive are worked on.

    `env` is the caller's whole environment. Raises `UnknownDroid` for an actor that does not
    exist: checks that ran could not be recorded.
    """
    return Workplace(
        folders=hive_bead_folders(hive.layout),
        cwd=hive.layout.tree,
        env=env,
        evidence_dir=places.evidence_dir(hive.layout),
        record=recorder(hive),
        now_ms=hive.now_ms,
        sleep=time.sleep,
        lock=documents_lock(hive),
        lookup=hive.documents.lookup,
        waits_for=lambda document: _closed_gates(hive, document),
        on_progress=on_progress,
        tell=tell,
    )


def gate_place(
    hive: Hive,
    env: Mapping[str, str],
    *,
    on_progress: Callable[[Progress], None] | None = None,
) -> GatePlace:
    """Returns where the gates of a hive are run; the setting `gate_results` limits what they keep.

    Raises `UnknownDroid` for an actor that does not exist.
    """
    return GatePlace(
        folder=places.gates_dir(hive.layout),
        cwd=hive.layout.tree,
        env=env,
        evidence_dir=places.evidence_dir(hive.layout),
        record=recorder(hive),
        now_ms=hive.now_ms,
        random_bytes=os.urandom,
        lock=documents_lock(hive),
        on_progress=on_progress,
        max_results_per_rule=hive.layout.settings.gate_results,
    )


def recorder(hive: Services) -> Callable[[dict[str, Any]], None]:
    """Returns what adds the record of a run of checks to the ledger.

    The record gets its id and all that the ledger adds, in place.
    """
    droid = hive.actor if hive.actor_or_none is not None else None

    def record(run: dict[str, Any]) -> None:
        if not hive.allow_secrets:
            _leave_secrets_out(run)
        with hive.transaction() as tx:
            recorded = tx.create(KIND, {"droid": droid, **run})
        run.clear()
        run.update(recorded)

    return record


def documents_lock(hive: Services) -> Callable[[], AbstractContextManager[object]]:
    """Returns what keeps other processes from rewriting a bead or a gate meanwhile."""

    def lock() -> AbstractContextManager[object]:
        setup.make_state_dir(hive.layout)
        return LongLock(
            places.lock_path(hive.layout),
            holder=hive.actor_or_none or "somebody",
            timeout_s=hive.layout.settings.lock_timeout_s,
        )

    return lock


@contextmanager
def run_lock(hive: Services, bead_id: str) -> Iterator[None]:
    """Keeps a second loop from a bead: each would count the other's attempts, and undo its end.

    Raises `Busy`, which names the holder, at once.
    """
    setup.make_state_dir(hive.layout)
    path = places.run_lock_path(
        hive.layout, slug(bead_id), zlib.crc32(bead_id.encode(errors="replace"))
    )
    with ExitStack() as held:
        try:
            held.enter_context(LongLock(path, holder=hive.actor_or_none or "somebody", timeout_s=0))
        except Busy as error:
            note = error.details.get("holder")
            who = (
                f"{note['holder']} (process {note['pid']})"
                if isinstance(note, dict) and note
                else "another process"
            )
            raise Busy(
                f"{bead_id} is being run by {who}",
                hint="wait for its end, or end it",
                bead_id=bead_id,
                holder=note,
            ) from error
        yield


def _leave_secrets_out(run: dict[str, Any]) -> None:
    # A script says its reason itself, and the ledger goes to git where the evidence does not.
    for result in run["results"]:
        try:
            refuse_secrets({"reason": result["reason"]})
        except LooksLikeSecret:
            result["reason"] = _LEFT_OUT


def _closed_gates(hive: Hive, document: Mapping[str, Any]) -> list[Unmet]:
    if "phase_gate" not in document:
        return []
    fields = {"metadata": {"phase_gate": document["phase_gate"]}}
    return [
        Unmet(
            f"{gate.workflow_id}/{gate.phase_id}", f"is a gate that has not passed: {gate.status}"
        )
        for gate in hive.documents.gates().before(fields)
        if not gate.passed
    ]
