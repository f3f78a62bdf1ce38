"""`queen setup`: connects coding agents to the hive."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext, suppress

import click

from queenbee.agents.client_settings import typed_settings
from queenbee.agents.files import file_edits
from queenbee.agents.ignored import Ignored
from queenbee.agents.setup import AGENTS, Setup, place_of
from queenbee.cli.app import Answer, Invocation, command
from queenbee.cli.commands.care.hive import settle_records, tell_without_hive
from queenbee.cli.proposing import settle_check
from queenbee.cli.rendering import paragraph
from queenbee.cli.terminal import say
from queenbee.core.text import printable
from queenbee.errors import InvalidInput, NotFound, QueenError
from queenbee.git import hooks
from queenbee.store.callers.agent_above import is_agent
from queenbee.store.layout import discover

_NONE_FOUND = "no agent was found here"
_NAME_IT = f"name those that you use ({', '.join(AGENTS)}): queen setup claude"


def _show(value: dict[str, list[dict[str, str]]]) -> None:
    if not any(value.values()):
        say("No settings of agents had to be changed.")
    for each in value["agents"]:
        found = f" ({each['found']})" if each["found"] else ""
        paragraph(f"{each['title']}{found}")
    for each in value["files"]:
        state = "would be " + each["state"] if "diff" in each else each["state"]
        paragraph(f"  {state:9} {printable(each['path'])}: {', '.join(each['parts'])}")
    for each in value["files"]:
        if each.get("diff"):
            click.echo(printable(each["diff"], keep_newlines=True), nl=False)
    for each in value["lacking"]:
        line = f"  {each['state']:9} {printable(each['path'])}: {each['part']}"
        paragraph(line, state=each["state"])
    for each in value["ignored"]:
        paragraph(f"  ignored   {Ignored(**each)}")


@command(
    show=_show,
    example="queen setup\nqueen setup codex claude --dry-run\nqueen setup --check",
    opens_hive=False,
)
@click.argument("agents", nargs=-1, metavar="[AGENT]...")
@click.option("--user", is_flag=True, help="Set up your own settings, for all repositories")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing")
@click.option(
    "--check",
    is_flag=True,
    help="Say what is missing or old, and exit 1 if anything is; and what an agent will ignore",
)
@click.option("--allow", is_flag=True, help="Let the agents run queen without asking you")
@click.option(
    "--undo", is_flag=True, help="Remove it, and restore every byte that was there before"
)
def setup(
    call: Invocation, agents: tuple[str, ...], user: bool, allow: bool, **what: bool
) -> Answer:
    """Connect coding agents to the hive

    AGENT is claude, codex, gemini, cursor, opencode, copilot, qwen or kilo; by default, those
    that are used here. Each gets hooks, the MCP server, a section in its file of instructions and a
    skill, and git gets the guard. The files belong to this worktree until you commit and merge
    them. Running it again changes nothing. If one file cannot be changed, none is.
    """
    check, dry_run, undo = what["check"], what["dry_run"], what["undo"]
    if (check and (undo or dry_run)) or (allow and undo):
        raise InvalidInput("give --check alone" if check else "give --undo without --allow")
    place, cwd = place_of(os.getcwd(), os.environ, user=user, undo=undo), os.getcwd()
    wanted = Setup(place, cwd, agents, undo=undo, allow=allow)
    _refuse_nobody(call, wanted, check=check)
    value: dict[str, list[dict[str, object]]] = {
        "agents": [
            {"name": each.name, "title": each.title, "found": wanted.found[each.name]}
            for each in wanted.agents
            if not undo
        ],
        "files": [],
        "lacking": [],
        "ignored": [],
    }
    if check:
        value["lacking"] = [
            {"state": state, "path": path, "part": part} for state, path, part in wanted.lacking()
        ]
        value["ignored"] = [vars(each) for each in wanted.ignored()]
        return Answer(value, yes=bool(wanted.agents) and not value["lacking"])
    value["files"] = _files(wanted.edits, dry_run=dry_run, shows_unchanged=not (dry_run or undo))
    guarded = _guarded(wanted)
    if not dry_run:
        _write(wanted, allow=allow)
    for note in wanted.notes():
        call.tell(note)
    by_hand = _tell_guard(call, wanted, guarded, dry_run=dry_run)
    if not user and not undo:
        tell_without_hive(call)
        if not dry_run:
            _tell_check(call)
            with suppress(QueenError):
                settle_records(call)
    return Answer(value, yes=not by_hand)


def _write(wanted: Setup, *, allow: bool) -> None:
    """Changes the files. Raises `InvalidInput` for an agent that gives itself more leave."""
    place = wanted.place
    if (allow or place.tree is None) and is_agent():
        raise InvalidInput(
            "only a person lets agents run queen unasked, or changes your own settings",
            hint="in a terminal that no agent has started; here: queen setup",
        )
    # What the agents may run unasked is asked for in each clone, and was typed in this one.
    typed = typed_settings(place.tree, place.env) if allow and place.tree else nullcontext()
    with typed:
        wanted.write()


def _refuse_nobody(call: Invocation, wanted: Setup, *, check: bool) -> None:
    """Raises `NotFound` before anything is changed if there is nothing to set up."""
    if wanted.agents or wanted.undo:
        return
    if wanted.guard is None and not check:
        raise NotFound(_NONE_FOUND, hint=_NAME_IT)
    call.tell(f"{_NONE_FOUND}; {_NAME_IT}")


def _tell_check(call: Invocation) -> None:
    """Has the check of the hive set, if there is a hive that has none."""
    with suppress(QueenError):
        way = settle_check(call, discover(os.getcwd(), os.environ, beads_dir=call.beads_dir))
        if way:
            call.tell(f"no check is set, so queen land refuses to land: {way}")


def _files(
    found: Sequence[file_edits.Edit], *, dry_run: bool, shows_unchanged: bool
) -> list[dict[str, object]]:
    files = []
    for each in found:
        if each.state == file_edits.UNCHANGED and not shows_unchanged:
            continue
        file: dict[str, object] = {
            "path": each.path,
            "state": each.state,
            "parts": list(dict.fromkeys(part.what for part in each.parts)),
        }
        if dry_run:
            file["diff"] = each.diff()
        files.append(file)
    return files


def _guarded(wanted: Setup) -> list[bool]:
    """Returns for each of git's hooks whether it runs the guard."""
    if wanted.guard is None:
        return []
    return [each.state == hooks.INSTALLED for each in hooks.states(wanted.guard)]


def _tell_guard(call: Invocation, wanted: Setup, before: list[bool], *, dry_run: bool) -> bool:
    """Tells what became of git's hooks; returns whether the user must finish them by hand."""
    folder = wanted.guard
    if folder is None:
        return False
    now = _guarded(wanted)
    if folder.is_shared and not wanted.undo:
        if not all(now):
            call.tell(
                f"the git guard is in no hook: {folder.folder} has those of other repositories, "
                "too; for all of them: queen guard install --shared"
            )
        return False
    if folder.snippet is not None:
        if wanted.undo or all(now):
            return False
        call.tell(f"{folder.framework} manages git's hooks: queen guard install says what to add")
        return not dry_run
    if wanted.undo and any(before):
        verb = "would be removed from" if dry_run else "was removed from"
    elif not wanted.undo and not all(before):
        verb = "would be added to" if dry_run else "was added to"
    else:
        return False
    call.tell(f"the git guard {verb} the hooks in {folder.folder}")
    if not dry_run and (said := folder.to_commit()):
        call.tell(said)
    return False
