"""One droid of the demo: works on its own, through the library, until nothing is ready.

QUEEN_DROID=ui-engineer python -m bench.droid
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime

from queenbee import Hive, Issue
from queenbee.errors import Busy, Held, IssueClosed, Taken

EDIT_S = 0.05
"""How long an edit takes: long enough for others to compete meanwhile."""


def main() -> None:
    """Claims, reserves, edits, completes; again and again."""
    with Hive.open() as hive:
        while work(hive):
            pass


def work(hive: Hive) -> bool:
    """Does the first issue that it can get; returns whether there was one."""
    for issue in hive.issues.ready(actor=hive.actor):
        try:
            hive.assignments.claim(issue.id)
        except (Taken, IssueClosed):
            continue  # Somebody was faster: try the next one.
        folder = issue.fields["labels"][0]  # type: ignore[index]
        try:
            hive.reservations.reserve([f"src/{folder}/"], issue_id=issue.id, wait_s=30)
        except (Held, Busy):
            hive.assignments.release(issue.id, reason="the files are taken")
            continue
        time.sleep(EDIT_S)
        close(hive.layout.issues_path, issue)
        hive.assignments.complete(issue.id, reason="done")
        return True
    return False


def close(tracker: str, issue: Issue) -> None:
    """Closes an issue in the tracker, as `bd close` would, before somebody else can claim it."""
    now = datetime.now(UTC).isoformat()
    row = {**issue.fields, "status": "closed", "updated_at": now, "closed_at": now}
    with open(tracker, "a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
