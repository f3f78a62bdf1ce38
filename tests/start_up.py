"""What a process loads: runs of the hot commands, of the edit hook and of the library."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

QUEEN = "from queenbee.cli.main import main; main()"
COMPLETION = (
    "import os; os.environ.update(_QUEEN_COMPLETE='bash_complete', "
    f"COMP_WORDS='queen show q', COMP_CWORD='2'); {QUEEN}"
)
HOOK = "from queenbee.hook.main import main; main()"

LIBRARY = (
    "import queenbee",
    "from queenbee import Hive",
    "from queenbee import Hive; Hive.open('.')",
    "from queenbee import Hive; Hive.open('.').messages.inbox()",
    "from queenbee import Hive; Hive.open('.').reservations.check(['x'])",
    "from queenbee import Hive; Hive.open('.').assignments.claim('qb-1')",
)

_TELL = """
import os, sys
before, leave = set(sys.modules), os._exit
def told(code):
    sys.stderr.write("\\n" + " ".join(set(sys.modules) - before))
    sys.stderr.flush()
    leave(code)
os._exit = told
"""


_SETTINGS = {"QUEEN_DURABILITY": "buffered", "QUEEN_LAND_ATTACHED": "1"}


def loaded(repo: Path, program: str, *arguments: str, stdin: str = "") -> set[str]:
    """Returns the modules that a program has loaded by its end, beyond those of a bare Python."""
    script = f"{_TELL}\n{program}\ntold(0)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, *arguments],
        cwd=repo,
        env={"QUEEN_DROID": "ui-engineer", "PATH": "/usr/bin:/bin", **_SETTINGS},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.rpartition("\n")[2].split())


def edit_event(tree: Path, path: str, **changes: object) -> str:
    """Returns the input of a hook before an edit of this file."""
    event = {
        "hook_event_name": "PreToolUse",
        "tool_name": "Edit",
        "session_id": "s",
        "cwd": str(tree),
        "tool_input": {"file_path": str(tree / path)},
    }
    return json.dumps(event | changes)
