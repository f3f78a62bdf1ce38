"""`queen bead verify`, `queen bead run`: the checks of a bead, once, or until they pass."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import click

from queenbee.cli.app import Answer, command, invocation, tell
from queenbee.cli.options import dry_run
from queenbee.cli.progress import watcher
from queenbee.cli.rendering import paragraph
from queenbee.cli.terminal import say
from queenbee.core.text import printable
from queenbee.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.library.hive import Hive

_TAIL_LINES = 5
_TAIL_BYTES = 4096
_TITLE = re.compile(r"--- standard (?:output|error), [0-9,]+ bytes ---")


def evidence_path(evidence: str) -> str:
    """Returns the path of evidence from the working directory; records name it from the hive."""
    hive = invocation().hive
    return os.path.relpath(os.path.join(hive.layout.beads_dir, evidence))


def _last_lines(evidence: str) -> list[str]:
    """Returns the end of what a check printed; nothing if its evidence is not here."""
    try:
        with open(evidence_path(evidence), "rb") as file:
            file.seek(max(0, os.path.getsize(file.name) - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    _, _, text = text.rpartition("\nduration: ")  # above it is what the check is, not its output
    lines = [line.rstrip() for line in text.splitlines()[1:] if line.strip()]
    return [line for line in lines if not _TITLE.fullmatch(line)][-_TAIL_LINES:]


def show_record(record: Mapping[str, Any]) -> None:
    """Shows the record of a run of checks, with its evidence."""
    for result in record["results"]:
        evidence = result["evidence"]
        where = f" [{printable(evidence_path(evidence))}]" if evidence else ""
        name, reason = printable(result["name"]), printable(result["reason"])
        paragraph(f"{result['status']:11} {name}: {reason}{where}", state=result["status"])
        for line in _last_lines(evidence) if evidence and result["status"] == "failed" else ():
            paragraph(f"            {printable(line)}")
    paragraph(f"{printable(record['subject_id'])}: {record['verdict']}", bold=True)


def _named(bead: str) -> str:
    """Returns the bead as you named it. Raises `NotFound` for a file that does not exist."""
    if bead.endswith(".json") and not os.path.lexists(bead):
        raise NotFound(f"there is no file {bead}", hint="name a bead: queen bead list")
    return bead


def _show(value: Mapping[str, Any]) -> None:
    if value.get("dry_run"):
        for line in value["checks"]:
            say(printable(line))
    else:
        show_record(value)


@command(
    show=_show, example="queen bead verify gt-login-001 --dry-run\nqueen bead verify gt-login-001"
)
@click.argument("bead", required=False, metavar="[BEAD]")
@dry_run
def verify(hive: Hive, bead: str | None, dry_run: bool) -> Answer:
    """Run the checks of a bead once

    Exit 0 if they pass, 1 if not. BEAD is an id, or the file of a Ralph bead; else the issue that
    you have. The commands come from the bead's own file, and their output is kept as evidence. See
    them first with --dry-run.
    """
    from queenbee.workflows import running  # noqa: PLC0415 - start-up

    own = hive.assignments.own
    bead = own() if bead is None else hive.issue_id(_named(bead), recorded=True)
    if dry_run:
        checks = running.checks_of(hive, bead)
        return Answer({"bead": bead, "dry_run": True, "checks": checks}, yes=True)
    record = running.verify(hive, bead, env=os.environ, on_progress=watcher())
    return Answer(record, yes=record["verdict"] == "passed")


def _show_outcome(value: Mapping[str, Any]) -> None:
    if value.get("dry_run"):
        paragraph(f"agent: sh -c {printable(value['agent_command'])}")
        for line in value["checks"]:
            say(printable(line))
    else:
        paragraph(f"{printable(value['bead'])}: {value['status']}", bold=True)
        paragraph(f"  {printable(value['message'])}")


@command(
    show=_show_outcome,
    example="queen bead run gt-login-001 --agent-cmd './agent.sh'\n"
    "queen bead run my-bead.json --agent-cmd './agent.sh' --dry-run",
)
@click.argument("bead", metavar="BEAD")
@click.option(
    "--agent-cmd", required=True, metavar="COMMAND", help="The command that works on the bead"
)
@dry_run
def run(hive: Hive, bead: str, agent_cmd: str, dry_run: bool) -> Answer:
    """Run an agent on a bead until its checks pass

    Claims the bead, runs COMMAND in a shell, then the checks, and repeats. Exit 0 if the checks
    pass, 1 if the loop stops at a limit or has to wait for something. The next attempt gets the
    failures in QUEEN_FAILURES and in the file QUEEN_FAILURES_FILE.
    """
    from queenbee.agents.client_settings import unseen_settings  # noqa: PLC0415 - start-up
    from queenbee.checks.consent import Consent  # noqa: PLC0415 - start-up
    from queenbee.store.trust import COMMAND, Proposal  # noqa: PLC0415 - start-up
    from queenbee.workflows import loop  # noqa: PLC0415 - start-up

    bead = hive.issue_id(_named(bead), recorded=True)
    if dry_run:
        checks = loop.checks_of_loop(hive, bead)
        value = {"bead": bead, "dry_run": True, "agent_command": agent_cmd, "checks": checks}
        return Answer(value, yes=True)

    consent = Consent.of(hive)
    consent.require_typed(Proposal(COMMAND, agent_cmd, origin="--agent-cmd"))

    def agent() -> str:
        consent.require_still(lambda: unseen_settings(hive.layout, hive.layout.tree, os.environ))
        return agent_cmd

    agent()  # Before it is claimed.
    outcome = loop.run(hive, bead, agent, env=os.environ, on_progress=watcher(), tell=tell)
    value = {
        "bead": outcome.bead.bead_id,
        "file": outcome.bead.path,
        "status": outcome.status,
        "why": outcome.why,
        "message": outcome.message,
        "attempts": outcome.attempts,
    }
    return Answer(value, yes=outcome.status == "completed")
