"""The product, broken on purpose: each row must be noticed by the law that it breaks."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass

from mutation.promises import Row

from tests.checker import ROOT
from tests.checker.__main__ import run

_TRIES = 4
"""Races are not met at every run."""


@dataclass(frozen=True)
class Broken:
    """One line that is wrong, the world in which that shows, and the laws that may notice."""

    module: str
    function: str
    old: str
    new: str
    world: str
    laws: tuple[str, ...]
    operations: int = 500

    def made(self, folder: str) -> str:
        """Copies the product, breaks it, and returns the folder."""
        shutil.copytree(os.path.join(ROOT, "queenbee"), os.path.join(folder, "queenbee"),
                        ignore=shutil.ignore_patterns("__pycache__"))  # fmt: skip
        path = os.path.join(folder, "queenbee", self.module)
        with open(path, encoding="utf-8") as file:
            source = file.read()
        row = Row(f"queenbee/{self.module}", self.function, self.old, self.new, (), "")
        with open(path, "w", encoding="utf-8") as file:
            file.write(row.broken(source))
        return folder


TABLE = (
    Broken("store/lock.py", "KernelLock._try",
           "fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)", "pass", "files",
            ("reservations", "assignments", "mail", "kept", "answers", "tracker")),
    Broken("core/leases.py", "exclude",
           "bool(one.tree_id and one.tree_id == other.tree_id)", "False",
           "files", ("reservations",)),
    Broken("services/assignments.py", "Assignments._give",
           "self._refuse_taken(issue_id, droid, current, place)", "pass",
           "files", ("assignments",)),
    Broken("services/messages.py", "Messages.read_unread", "{READ: tx.now}", "{}",
           "files", ("mail",)),
    Broken("services/telling/notices.py", "take",
           "_untold(told, ended, waits) if mine else []", "_untold(told, {}, waits)",
           "files", ("told",)),
    Broken("services/telling/notices.py", "_untold", "ended[key]()", "''", "files", ("told",)),
    Broken("store/tracker/issues_write.py", "edited", "known is None", "True",
           "files", ("tracker",)),
    Broken("git/landing/together/checked.py", "run_check", "ran.exit_code == 0", "True",
           "files", ("landing",)),
    Broken("git/landing/moving/healing.py", "_committed_by_others", "each in made", "False",
           "files", ("landing",), 2_000),
    Broken("core/readiness.py", "_blockers", "kind in BLOCKING", "False", "files", ("order",)),
    Broken("workflows/document_answers.py", "HiveDocuments.held_back",
           "held.update(self._behind_gates(with_metadata))", "pass", "files", ("order",)),
    Broken("store/memory/intake.py", "Intake.record",
           "self.folding.take(lines)", "pass", "files", ("kept",)),
    Broken("git/remote/syncing.py", "_Exchange._import",
           "self._append(chain(first, lacking)) if first else set()", "set()",
           "remote", ("reservations", "agreement", "mail", "kept")),
    Broken("services/messages.py", "Messages.read_unread", "{READ: tx.now}", "{}",
           "database", ("mail",)),
    Broken("store/carriers/postgres/postgres_carrier.py", "PostgresCarrier._was_recorded",
           "connection.is_recorded(kind, first.end, turn, left_s)", "True",
           "database", ("kept", "mail"), 2_000),
    Broken("store/carriers/postgres/postgres_carrier.py", "PostgresCarrier.now_ms",
           "then_ms + (time.monotonic_ns() - at_ns) // 1_000_000", "time.time_ns() // 1_000_000",
           "database", ("reservations", "refusals")),
    Broken("mcp/tools.py", "_inbox", "messages.read_unread(limit=given['limit'])",
           "messages.inbox(unread=True)", "files", ("mail",)),
)  # fmt: skip


def try_all(*, seed: int) -> int:
    """Tries each row; returns 1 if one was not noticed."""
    missed = 0
    for row in TABLE:
        found = _noticed(row, seed)
        missed += not found
        print(f"{row.module} {row.function}: {', '.join(found) or 'NOT NOTICED'}", flush=True)
    print(f"broken on purpose: {len(TABLE)}, noticed: {len(TABLE) - missed}")
    return 1 if missed else 0


def _noticed(row: Broken, seed: int) -> list[str]:
    for number in range(_TRIES):
        with tempfile.TemporaryDirectory(prefix="checker-broken-") as folder:
            broken, _ = run(
                row.world, operations=row.operations, seed=seed + number, product=row.made(folder)
            )
        if found := [law for law in row.laws if law in broken]:
            return found
    return []
