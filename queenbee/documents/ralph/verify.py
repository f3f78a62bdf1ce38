"""Verifies a Ralph bead: one pass of its checks, kept as evidence, record and `ralph_meta`."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

from queenbee.checks.engine import ChecksInterrupted, run_until, verdict
from queenbee.checks.processes import Interrupts
from queenbee.checks.verification import (
    missing_evidence,
    verification_record,
    write_evidence,
)
from queenbee.documents.ralph.bead import (
    bead_checks,
    bead_status,
    check_bead,
    evidence_is_required,
    unmet_dependencies,
)
from queenbee.documents.ralph.store import BeadFile, BeadFolders, list_beads, update_bead
from queenbee.errors import Conflict, InvalidInput
from queenbee.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from queenbee.checks.engine import Check, CheckResult, Progress
    from queenbee.documents.ralph.bead import Unmet
    from queenbee.documents.ralph.store import Lock


@dataclass(frozen=True)
class Workplace:
    """Is where beads are worked on, and what the edge lends for it.

    `env` is the caller's whole environment: the agent gets all of it, a verifier the allow-list.
    `record` takes the record of each run of checks. `lock` keeps other processes out while a
    bead file is rewritten; no program runs under it. `lookup` finds the document that a
    dependency names, by default among the beads of `folders`; `waits_for` says what a bead waits
    for besides its dependencies. `tell` gets a line for people.
    """

    folders: BeadFolders
    cwd: str
    env: Mapping[str, str]
    evidence_dir: str
    record: Callable[[dict[str, Any]], None]
    now_ms: Callable[[], int]
    sleep: Callable[[float], None]
    lock: Lock = nullcontext
    lookup: Callable[[str], Mapping[str, Any] | None] | None = None
    waits_for: Callable[[Mapping[str, Any]], list[Unmet]] = lambda _: []
    on_progress: Callable[[Progress], None] | None = None
    tell: Callable[[str], None] = lambda _: None


@dataclass(frozen=True)
class Verification:
    """Is one pass of a bead's checks; `bead` is as it was left."""

    bead: BeadFile
    verdict: str
    record: Mapping[str, Any]
    results: Sequence[CheckResult] = ()


def verify_bead(bead: BeadFile, place: Workplace) -> Verification:
    """Returns what one pass of the bead's checks found; the bead's status stays as it is.

    Writes the evidence, the record, and `ralph_meta.verifier_results`: of a pass that Ctrl-C
    ended too, before `KeyboardInterrupt` goes on. Raises `InvalidInput` for a bead that is not
    valid or has no verifier.
    """
    checks = checks_to_run(bead)
    return run_pass(bead, checks, place, attempt=attempts_of(bead))


def complete_bead(
    bead: BeadFile, place: Workplace, *, unverified_because: str | None = None
) -> Verification:
    """Returns the verification that completed the bead, or, where it failed, did not.

    With a reason in `unverified_because` no check runs, and the record says so. A bead that
    already says it is completed is held to it: one that fails is `in_progress` again. Raises
    `Conflict` for a bead that waits for another, or needs evidence that there is none of.
    """
    unmet = unmet_of(bead, place)
    if unmet:
        waits = "; ".join(f"{one.bead_id} {one.reason}" for one in unmet)
        raise Conflict(
            f"{bead.bead_id} is blocked: {waits}",
            hint=f"queen show {bead.bead_id}",
            bead_id=bead.bead_id,
            unmet=[one.bead_id for one in unmet],
        )
    if unverified_because is None:
        done = verify_bead(bead, place)
        if done.verdict != "passed":
            return _not_completed(done, place)
        _refuse_without_evidence(bead, done, place)
    else:
        done = _unverified(bead, place, unverified_because)
    completed = update_in_place(done.bead, place, status="completed")
    return Verification(completed, done.verdict, done.record, done.results)


def _not_completed(done: Verification, place: Workplace) -> Verification:
    if bead_status(done.bead.document) != "completed":
        return done
    bead = update_in_place(done.bead, place, status="in_progress")
    return Verification(bead, done.verdict, done.record, done.results)


def run_pass(
    bead: BeadFile,
    checks: Sequence[Check],
    place: Workplace,
    *,
    attempt: int,
    time_left: Callable[[], float] | None = None,
    meta: Callable[[], dict[str, Any]] = dict,
    verifiers_from: int = 0,
) -> Verification:
    """Returns one run of the checks, kept; `meta` gives what else `ralph_meta` is to say.

    The checks before `verifiers_from` are not the bead's own. Raises `ChecksInterrupted` on
    Ctrl-C, when everything is kept.
    """
    started_ms = place.now_ms()
    with Interrupts() as interrupts:
        results = run_until(
            interrupts,
            checks,
            cwd=place.cwd,
            env=place.env,
            on_progress=place.on_progress,
            time_left=time_left,
        )
        record = verification_record(
            subject_kind="bead",
            subject_id=bead.bead_id,
            attempt=attempt,
            started_ms=started_ms,
            finished_ms=place.now_ms(),
            verdict=verdict(results),
            results=results,
            evidence=write_evidence(place.evidence_dir, bead.bead_id, started_ms, results),
        )
        place.record(record)
        verifier_results = record["results"][verifiers_from:]
        left = update_in_place(bead, place, verifier_results=verifier_results, **meta())
    if interrupts.count:
        raise ChecksInterrupted(results)
    return Verification(left, record["verdict"], record, results)


def update_in_place(bead: BeadFile, place: Workplace, **changes: Any) -> BeadFile:
    """Returns the bead with a new `status`, and the other changes made in its `ralph_meta`.

    A change to None removes the member.
    """

    def change(document: dict[str, Any]) -> None:
        if "status" in changes:
            document["status"] = changes["status"]
        meta = document.get("ralph_meta")
        news = {"executor_version": f"queenbee {__version__}", **changes}
        news.pop("status", None)
        merged = {**(meta if isinstance(meta, dict) else {}), **news}
        document["ralph_meta"] = {
            name: value for name, value in merged.items() if value is not None or name not in news
        }

    return update_bead(bead, change, folders=place.folders, lock=place.lock)


def checks_to_run(bead: BeadFile) -> list[Check]:
    """Returns the checks of a bead. Raises `InvalidInput` if it is not valid or has none."""
    check_bead(bead.document, bead.path)
    checks = bead_checks(bead.document)
    if not checks:
        raise InvalidInput(
            f"{bead.bead_id} cannot be verified: its dod.verifiers is empty",
            hint=f"add a command that must pass to {bead.path}",
            bead_id=bead.bead_id,
        )
    return checks


def refuse_completed(bead: BeadFile) -> None:
    """Raises `Conflict` for a bead that is completed."""
    if bead_status(bead.document) == "completed":
        raise Conflict(
            f"{bead.bead_id} is completed already",
            hint=f"queen show {bead.bead_id}",
            bead_id=bead.bead_id,
        )


def unmet_of(bead: BeadFile, place: Workplace) -> list[Unmet]:
    """Returns what the bead still waits for. Raises `InvalidInput` if it is not valid."""
    check_bead(bead.document, bead.path)
    lookup = place.lookup
    if lookup is None:
        beads, _ = list_beads(place.folders)
        documents = {other.bead_id: other.document for other in beads}
        lookup = documents.get
    return unmet_dependencies(bead.document, lookup) + place.waits_for(bead.document)


def attempts_of(bead: BeadFile) -> int:
    """Returns how many attempts a valid bead has had."""
    return max(0, int(bead.document.get("ralph_meta", {}).get("attempt_count", 0)))


def _unverified(bead: BeadFile, place: Workplace, reason: str) -> Verification:
    now_ms = place.now_ms()
    record = verification_record(
        subject_kind="bead",
        subject_id=bead.bead_id,
        attempt=attempts_of(bead),
        started_ms=now_ms,
        finished_ms=now_ms,
        verdict="not_verified",
        results=[],
        evidence=[],
    )
    record["reason"] = reason
    done = Verification(bead, "not_verified", record)
    # What is refused is not recorded as done.
    _refuse_without_evidence(bead, done, place)
    place.record(record)
    return done


def _refuse_without_evidence(bead: BeadFile, done: Verification, place: Workplace) -> None:
    if not evidence_is_required(bead.document):
        return
    absent = missing_evidence(done.record, place.evidence_dir)
    if absent or not done.results:
        raise Conflict(
            f"{bead.bead_id} requires evidence, and there is none of "
            f"{', '.join(absent) or 'its verifiers'}",
            hint=f"queen verify {bead.bead_id}",
            bead_id=bead.bead_id,
            missing=absent,
        )
