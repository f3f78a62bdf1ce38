"""The records of checks in a hive's ledger: added after a run, and read back."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from queenbee.services.writing.secrets import LooksLikeSecret

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from queenbee.checks.verification import VerificationRecord
    from queenbee.services.hive import Services

KIND = "verifications"
_LEFT_OUT = "left out because it seems to contain a secret; the evidence has it"


def recorder(hive: Services) -> Callable[[VerificationRecord], VerificationRecord]:
    """Returns a function that adds the record of a run to the ledger, and returns it from there.

    Raises `UnknownDroid` for an unknown actor, before anything has run.
    """
    droid = hive.actor if hive.actor_or_none is not None else None
    clean = without_secrets(hive)

    def record(run: VerificationRecord) -> VerificationRecord:
        # A script writes its own reason, and git tracks the ledger but not the evidence.
        for result in run["results"]:
            result["reason"] = str(clean(result["reason"]))
        hive.look(run)
        with hive.transaction() as tx:
            return cast("VerificationRecord", tx.create(KIND, {"droid": droid, **run}))

    return record


def without_secrets(hive: Services) -> Callable[[object], object]:
    """Returns a function that replaces each text that seems to contain a secret, at any depth."""

    def cleaned(value: object) -> object:
        if isinstance(value, dict):
            return {key: cleaned(each) for key, each in value.items()}
        if isinstance(value, list):
            return [cleaned(each) for each in value]
        if isinstance(value, str):
            try:
                hive.look({"text": value})
            except LooksLikeSecret:
                return _LEFT_OUT
        return value

    return cleaned


def last_verification(hive: Services, bead_id: str) -> Mapping[str, object] | None:
    """Returns the newest record of a run of a bead's checks, as it is in the ledger, or None."""
    equals = {"subject_id": bead_id, "subject_kind": "bead"}
    found = hive.state(KIND).select(equals, newest_first=True, limit=1)
    return found[0] if found else None


def recent_verifications(hive: Services, *, limit: int) -> list[Mapping[str, object]]:
    """Returns the newest records of runs of checks, of beads and gates, newest first."""
    return list(hive.state(KIND).select({}, newest_first=True, limit=limit))
