"""Verifies and completes a Ralph bead: its checks run once, and the bead keeps the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from queenbee.checks.check import Check, describe
from queenbee.checks.consent import VERIFIER, Consent, SeenCheck
from queenbee.checks.runner import CheckRun, CheckRunner
from queenbee.checks.verification import Subject, VerificationRecord
from queenbee.core.text import suggested
from queenbee.documents.ralph.bead_files import BeadFile, BeadFolders, list_beads, update_bead
from queenbee.documents.ralph.ralph_bead import (
    Unmet,
    bead_checks,
    bead_status,
    check_bead,
    evidence_is_required,
    unmet_dependencies,
)
from queenbee.errors import Conflict, InvalidInput
from queenbee.version import __version__

WaitsFor = Callable[[Mapping[str, Any]], list[Unmet]]


@dataclass(frozen=True)
class Verification:
    """One run of a bead's checks; `bead` is the bead afterwards."""

    bead: BeadFile
    run: CheckRun

    @property
    def record(self) -> VerificationRecord:
        """The record of the run."""
        return self.run.record

    @property
    def verdict(self) -> str:
        """`passed`, `failed`, or `not_verified` if no check ran."""
        return self.run.record["verdict"]


def verify_bead(bead: BeadFile, runner: CheckRunner, folders: BeadFolders) -> Verification:
    """Returns the result of running the bead's checks once; its status does not change.

    Writes the evidence, the record, and `ralph_meta.verifier_results`; if Ctrl-C ends the run, it
    does so before it raises `ChecksInterrupted`. Raises `InvalidInput` for a bead that is not valid
    or has no verifier, and `Untrusted`.
    """
    with runner.run(_subject(bead), seen_checks(bead, runner.consent)) as run:
        bead = update_meta(bead, folders, verifier_results=run.record["results"])
    return Verification(bead, run)


def complete_bead(
    bead: BeadFile,
    runner: CheckRunner,
    folders: BeadFolders,
    *,
    waits_for: WaitsFor | None = None,
    unverified_because: str | None = None,
) -> Verification:
    """Returns the verification, which completed the bead if it passed.

    With a reason in `unverified_because` no check runs, and the record gives the reason. A bead
    that already claims to be completed is verified too: if that fails, it is `in_progress` again.
    `waits_for` returns what a bead waits for; by default, its dependencies in `folders`. Raises
    `Conflict` for a bead that waits for something, or requires evidence and has none.
    """
    if unverified_because is None:
        done = verify_to_complete(bead, runner, folders, waits_for=waits_for)
        if done.verdict != "passed":
            return done
    else:
        _refuse_blocked(bead, folders, waits_for)
        _refuse_without_evidence(bead, runner, None)
        done = Verification(bead, runner.record_unverified(_subject(bead), unverified_because))
    return Verification(update_meta(done.bead, folders, status="completed"), done.run)


def verify_to_complete(
    bead: BeadFile,
    runner: CheckRunner,
    folders: BeadFolders,
    *,
    waits_for: WaitsFor | None = None,
) -> Verification:
    """Returns the verification of a bead that could be completed, and is not yet.

    A bead that already claims to be completed is `in_progress` again if it fails. Raises as
    `complete_bead` does.
    """
    _refuse_blocked(bead, folders, waits_for)
    done = verify_bead(bead, runner, folders)
    if done.verdict != "passed":
        if bead_status(done.bead.document) != "completed":
            return done
        return Verification(update_meta(done.bead, folders, status="in_progress"), done.run)
    _refuse_without_evidence(bead, runner, done.run)
    return done


def _refuse_blocked(bead: BeadFile, folders: BeadFolders, waits_for: WaitsFor | None) -> None:
    unmet = unmet_of(bead, folders, waits_for)
    if unmet:
        reasons = "; ".join(f"{one.bead_id} {one.reason}" for one in unmet)
        raise Conflict(
            f"{bead.bead_id} is blocked: {reasons}",
            hint=suggested("queen show", bead.bead_id),
            bead_id=bead.bead_id,
            unmet=[one.bead_id for one in unmet],
        )


def update_meta(
    bead: BeadFile, folders: BeadFolders, *, status: str | None = None, **changes: object
) -> BeadFile:
    """Returns the bead with a new `status`, if given, and with the changes to its `ralph_meta`.

    A change to None removes the member.
    """
    news = {"executor_version": f"queenbee {__version__}", **changes}

    def change(document: dict[str, Any]) -> None:
        if status is not None:
            document["status"] = status
        meta = document.get("ralph_meta")
        merged = {**(meta if isinstance(meta, dict) else {}), **news}
        document["ralph_meta"] = {
            name: value for name, value in merged.items() if value is not None or name not in news
        }

    return update_bead(bead, change, folders)


def checks_to_run(bead: BeadFile, shell: str) -> list[Check]:
    """Returns the checks of a bead. Raises `InvalidInput` if it is not valid or has none."""
    check_bead(bead.document, bead.place)
    checks = bead_checks(bead.document, shell)
    if not checks:
        raise InvalidInput(
            f"{bead.bead_id} cannot be verified: its dod.verifiers is empty",
            hint=f"add a command that must pass to {bead.place}",
            bead_id=bead.bead_id,
        )
    return checks


def seen_checks(bead: BeadFile, consent: Consent) -> list[SeenCheck]:
    """Returns the checks of a bead, to be run. Raises as `checks_to_run` does, and `Untrusted`."""
    return consent.checks(
        VERIFIER, bead.bead_id, checks_to_run(bead, consent.shell), path=bead.path
    )


def describe_checks(bead: BeadFile, shell: str) -> list[str]:
    """Returns a line for each check of a bead. Raises as `checks_to_run` does."""
    checks = checks_to_run(bead, shell)
    lines = zip(describe(checks), checks, strict=True)
    return [f"{line}, on failure: {check.on_failure}" for line, check in lines]


def refuse_completed(bead: BeadFile) -> None:
    """Raises `Conflict` for a completed bead."""
    if bead_status(bead.document) == "completed":
        raise Conflict(
            f"{bead.bead_id} is already completed",
            hint=suggested("queen show", bead.bead_id),
            bead_id=bead.bead_id,
        )


def unmet_of(bead: BeadFile, folders: BeadFolders, waits_for: WaitsFor | None) -> list[Unmet]:
    """Returns what the bead still waits for. Raises `InvalidInput` if it is not valid."""
    check_bead(bead.document, bead.place)
    if waits_for is not None:
        return waits_for(bead.document)
    beads, _ = list_beads(folders)
    documents = {other.bead_id: other.document for other in beads}
    return unmet_dependencies(bead.document, documents.get)


def attempts_of(bead: BeadFile) -> int:
    """Returns how many attempts a valid bead has had."""
    return max(0, int(bead.document.get("ralph_meta", {}).get("attempt_count", 0)))


def _subject(bead: BeadFile) -> Subject:
    return Subject("bead", bead.bead_id, attempts_of(bead))


def _refuse_without_evidence(bead: BeadFile, runner: CheckRunner, run: CheckRun | None) -> None:
    if not evidence_is_required(bead.document):
        return
    missing = runner.missing_evidence(run) if run is not None else []
    if missing or run is None:
        raise Conflict(
            f"{bead.bead_id} requires evidence, but there is none for "
            f"{', '.join(missing) or 'its verifiers'}",
            hint=suggested("queen bead verify", bead.bead_id),
            bead_id=bead.bead_id,
            missing=missing,
        )
