"""`queen hive engine`: whether the hive is kept in files or in a database."""

from __future__ import annotations

import os

import click

from queenbee.cli.app import Answer, Invocation, QueenGroup, command, group, tell
from queenbee.cli.terminal import say
from queenbee.core.text import lines_counted, printable
from queenbee.store import layout
from queenbee.store.carriers import switching
from queenbee.store.droids.agent_callers import is_by_agent
from queenbee.store.layout import Layout


def _layout(call: Invocation) -> Layout:
    return layout.discover(layout.working_directory(), os.environ, beads_dir=call.beads_dir)


def _show_use(value: dict[str, object]) -> None:
    kinds = value["kinds"]
    assert isinstance(kinds, dict)
    for kind, count in kinds.items():
        say(
            f"  {printable(kind)}: {lines_counted(count['lines'])} verified, {count['added']} added"
        )
    name = "" if value["engine"] == "files" else f", as {printable(str(value['hive']))}"
    say(f"The hive is now in {value['engine']}{name}.")
    say("next: commit .beads/queen.toml, so that every clone uses the same engine")


def _show_status(value: dict[str, object]) -> None:
    place = f", hive {printable(str(value['hive']))}" if "hive" in value else ""
    say(f"engine: {value['engine']}{place}")
    if "database" in value:
        say(f"database: {printable(str(value['database']))}")
    faults = value.get("faults")
    for each in faults if isinstance(faults, list) else ():
        hint = f" [{printable(each['hint'])}]" if each["hint"] else ""
        say(f"{each['severity']:5} {printable(each['message'])}{hint}")
    if "noted" in value:
        say(f"  but this machine noted: {printable(str(value['noted']))}")
    for name, text in (("only_in_files", "only in files"), ("verified", "verified")):
        counts = value.get(name)
        for kind, count in counts.items() if isinstance(counts, dict) else ():
            say(f"  {printable(kind)}: {lines_counted(count)} {text}")


@command(show=_show_use, example="queen hive engine use postgres", opens_hive=False)
@click.argument("kind", type=click.Choice(switching.KINDS))
@click.option("--hive", "name", help="The hive's name in the database (default: a new one)")
def use(call: Invocation, kind: str, name: str | None) -> dict[str, object]:
    """Carry the hive over to files or PostgreSQL, and use that

    Every line is verified before the switch; until then, the old engine stays in use. Nobody can
    write meanwhile. Run it again to add lines that other clones wrote to files.
    """
    from queenbee.git.remote.withheld import Held, sentence  # noqa: PLC0415 - start-up

    here = _layout(call)
    held = Held(here)
    try:
        return switching.use(here, kind, name, held, is_typed=not is_by_agent(here))
    finally:  # Also where somebody else is to get the lines in another way.
        for each in held.found():
            tell(sentence(each))


@command(show=_show_status, example="queen hive engine status", opens_hive=False)
@click.option("--verify", is_flag=True, help="Compare every line with its digest")
def status(call: Invocation, verify: bool) -> Answer:
    """Show where the hive is kept, and what is wrong with the database

    Exit 0 if nothing is, else 1.
    """
    found = switching.status(_layout(call), verify=verify)
    faults = found.get("faults")
    wrong = isinstance(faults, list) and any(each["severity"] == "error" for each in faults)
    return Answer(found, yes=not wrong)


engine: QueenGroup = group(
    "engine",
    [use, status],
    help="Where the hive is kept: in files, or in PostgreSQL",
    example="queen hive engine status",
)
