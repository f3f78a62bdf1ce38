"""What `queen doctor` finds, and what it repairs."""

from __future__ import annotations

from dataclasses import dataclass

from acting import command

from queenbee import Hive


@dataclass
class Finding:
    """One finding, with the fields of `queen doctor --json`."""

    code: str
    file: str
    message: str
    line: int | None
    hint: str | None
    severity: str
    fixed: bool


def examine(hive: Hive) -> list[Finding]:
    """Returns what the doctor finds in a hive, at the hive's time and as its droid."""
    return _doctor(hive)


def repair(hive: Hive) -> list[Finding]:
    """Returns what the doctor finds, with what it has repaired marked as fixed."""
    return _doctor(hive, "--fix")


def _doctor(hive: Hive, *options: str) -> list[Finding]:
    ran = command(hive, "doctor", "--json", *options)
    assert ran.code in (0, 1), ran
    # The command's clock was set for this, which it notes.
    return [Finding(**row) for row in ran.json if row["code"] != "clock_behind"]
