"""One reader of many that run at once: a command, a hook or the server of MCP.

    python telling_worker.py ROLE

Each round begins at a line on standard input, so that all readers begin it together, and ends with
a line of JSON on standard output: `whole`, the subjects of the messages that were given whole, and
`heads`, everything that was said beside the answer.
"""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from entry_points import run_hook, run_queen

COMMANDS = {"read": ("msg", "read"), "next": ("next",), "issues": ("issues",)}


def by_command(*arguments: str) -> dict[str, Any]:
    """Runs one command."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run_queen(["--json", *arguments])
    assert code in (0, 1), err.getvalue()
    answer = json.loads(out.getvalue())
    mail = answer if arguments == ("msg", "read") else []
    mail = answer["messages"] if arguments == ("next",) else mail
    return {"whole": [each["subject"] for each in mail], "heads": err.getvalue()}


def by_hook() -> dict[str, Any]:
    """Answers one event of an agent: a shell command of it ended."""
    event = {
        "session_id": "1b4e28ba-2fa1-41d2-883f-0016d3cca427",
        "cwd": os.getcwd(),
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "true"},
    }
    answer = run_hook(json.dumps(event).encode(), os.environ, os.getcwd())
    return {"whole": [], "heads": json.dumps(answer, ensure_ascii=False)}


def by_server() -> dict[str, Any]:
    """Calls the tool that reads mail, of a server in this process."""
    from mcp_clients import called

    [answer] = called(Path.cwd(), ("inbox", {"read": True}), env=dict(os.environ))
    given = answer.structured_content
    heads = json.dumps(given.get("notices", []), ensure_ascii=False)
    return {"whole": [each["subject"] for each in given["result"]], "heads": heads}


def main() -> None:
    role = sys.argv[1]
    print("ready", flush=True)
    for _ in sys.stdin:
        if role in COMMANDS:
            said = by_command(*COMMANDS[role])
        else:
            said = by_hook() if role == "hook" else by_server()
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
