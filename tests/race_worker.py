"""One process of the race: runs `queen` round after round in its own worktree.

    python race_worker.py DROID ROUNDS

Each round begins at a line on standard input, so that all processes begin it together, and ends
with a line of JSON on standard output: what `queen` answered to a claim and to a reservation.
"""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout

from entry_points import run_queen

PATTERNS = (
    "src/{0}/app.py",
    "src/{0}/**",
    "src/{0}/*.py",
    "{{src,lib}}/{0}/app.py",
    "src/{0}/[!b]pp.py",
    "*/{0}/{{app,lib}}.py",
    "src/{0}/",
    "src/{0}/a?p.*",
)
"""Each covers `src/ROUND/app.py`; a droid asks for one of its own."""


def answered(*arguments: str) -> dict[str, object]:
    """Returns the exit status and the document of one command."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run_queen(["--json", *arguments])
    return {"code": code, "document": json.loads(out.getvalue() or err.getvalue())}


def main() -> None:
    droid, rounds = sys.argv[1], int(sys.argv[2])
    os.environ["QUEEN_DROID"] = droid
    mine = PATTERNS[int(droid.rpartition("-")[2])]
    print("ready", flush=True)
    for number in range(rounds):
        sys.stdin.readline()
        claim = answered("claim", f"qb-{number}", "--new")
        lease = answered("reserve", mine.format(f"r{number}"))
        print(json.dumps({"claim": claim, "lease": lease}), flush=True)


if __name__ == "__main__":
    main()
