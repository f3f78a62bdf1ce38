"""`queen config`: the settings in `.beads/queen.toml`."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from queenbee.agents.client_settings import unseen_settings
from queenbee.checks.consent import Consent
from queenbee.cli.app import Invocation, QueenGroup, command, group, tell
from queenbee.cli.person import show_commands
from queenbee.cli.rendering import table
from queenbee.cli.terminal import say
from queenbee.core.text import escaped, lines_counted, printable
from queenbee.core.timestamps import format_ms
from queenbee.errors import InvalidInput, QueenError, Untrusted
from queenbee.git.contents.uncommitted import settings_to_commit
from queenbee.git.upstream import pushing
from queenbee.services.undo.of_settings import note_setting
from queenbee.services.writing.seeing import WAYS, note_typed, set_value
from queenbee.store import layout as layouts
from queenbee.store.creating import in_toml
from queenbee.store.droids.agent_callers import is_by_agent
from queenbee.store.droids.session_names import find_actor
from queenbee.store.settings import FILE_NAME, JUDGING, SETTINGS, Setting, last_good_path
from queenbee.store.settings_file import changing_text
from queenbee.store.trust import DATABASE, TARGET, Trust, of_target

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.library.hive import Hive
    from queenbee.store.layout import Layout
    from queenbee.store.trust import Proposal

_NAME = click.argument("name", metavar="NAME")


def _layout(call: Invocation) -> Layout:
    found = layouts.discover(layouts.working_directory(), os.environ, beads_dir=call.beads_dir)
    call.tell_problem(found)
    return found


def _path(layout: Layout) -> str:
    return os.path.join(layout.beads_dir, FILE_NAME)


def _rows(layout: Layout) -> list[dict[str, object]]:
    """Returns all settings with what counts now: while the file cannot be read, what it said last.

    `elsewhere` are the files that say something else, which counts once it is committed or landed.
    """
    from queenbee.git.landing.judged.judging import branch_file, counting  # noqa: PLC0415 - start-up

    path = _path(layout)
    if layout.settings.problem is not None:
        path = last_good_path(layout.state_dir)
    files = {path: changing_text.values_in(path)}
    with suppress(QueenError):
        own = branch_file(layout, "land.check")
        files |= {own: changing_text.values_in(own)} if own is not None else {}
    counts = counting(layout, files[path])
    return [_row(each, counts, files) for each in SETTINGS]


def _row(
    setting: Setting, said: Mapping[str, object], files: Mapping[str, Mapping[str, object]]
) -> dict[str, object]:
    value = said.get(setting.name, setting.default)
    others = {path: each.get(setting.name, setting.default) for path, each in files.items()}
    return {
        "name": setting.name,
        "value": value,
        "default": setting.default,
        "is_set": setting.name in said,
        "allowed": setting.type.allowed,
        "sentence": setting.sentence,
        "elsewhere": [
            {"path": path, "value": each}
            for path, each in others.items()
            if setting.name in JUDGING and each != value
        ],
    }


def _show_list(rows: Sequence[dict[str, Any]]) -> None:
    cells = [
        [
            str(row["name"]),
            printable(in_toml(row["value"])),
            "not as in the file" if row["elsewhere"] else "" if row["is_set"] else "default",
        ]
        for row in rows
    ]
    table(["SETTING", "VALUE", ""], cells, empty="No settings.", text=["VALUE"])


@command(show=_show_list, example="queen config list", opens_hive=False)
def list_(call: Invocation) -> list[dict[str, object]]:
    """List all settings with their values"""
    return _rows(_layout(call))


def _show_value(row: dict[str, Any]) -> None:
    value = row["value"]
    if not row["is_set"]:
        tell(f"{row['name']} is not set; this is the default")
    for each in row["elsewhere"]:
        said = f"{each['path']} says {in_toml(each['value'])}"
        tell(f"{printable(said)}, which counts once the main branch has it")
    for each in value if isinstance(value, list) else [value]:
        say(printable(each if isinstance(each, str) else in_toml(each)))


@command(show=_show_value, example="queen config get land.check", opens_hive=False)
@_NAME
def get(call: Invocation, name: str) -> dict[str, object]:
    """Show the value of a setting"""
    changing_text.setting_named(name)
    return next(each for each in _rows(_layout(call)) if each["name"] == name)


def _show_changed(value: dict[str, Any]) -> None:
    what = f"{value['name']} = {printable(in_toml(value['value']))}"
    if not value["changed"]:
        by = f" ({value['by']})" if value["by"] else ""
        say(f"{what} already{by}")
        return
    say(f"{what}{'' if value['is_set'] else ' again, by default'}")
    if value["to_land"]:
        say(f"it counts once it has landed: {value['to_land']}")
    elif value["to_commit"]:
        who = "other clones get it" if value["counts"] else "it counts"
        say(f"{who} once it is committed: {value['to_commit']}")


def _change(call: Invocation, name: str, value: object, *, add: bool = False) -> dict[str, object]:
    """Sets a setting, or removes it with None; returns it as it is now, and who set it before."""
    from queenbee.git.landing.judged.judging import branch_file, counting  # noqa: PLC0415 - start-up

    layout = _layout(call)
    setting = changing_text.setting_named(name)
    own = branch_file(layout, name)
    path = own or _path(layout)
    holder = call.actor or "queen config"
    before = changing_text.values_in(path).get(name)
    changed = set_value(layout, name, value, holder=holder, add=add, path=own)
    if changed:
        actor = find_actor(layout, os.environ, call.actor)
        note_setting(layout, actor[0] if actor else None, name, path, before)
    if name == "land.push":  # The text of the setting does not say where to.
        asked = pushing(layout, pushes=bool(value))
        note_typed(layout, [each for each in asked if each.origin == name])
    if name in ("land.push", TARGET, *WAYS):
        _tell_of_landing(_layout(call))
    by = ""
    if not changed and value is not None:
        from queenbee.git.contents.settings_origin import line_of, who  # noqa: PLC0415 - start-up

        line = line_of(changing_text.text_of(path), name)
        by = who(layout, line, os.path.dirname(path)) if line is not None else ""
    to_commit = settings_to_commit(_layout(call)) if changed and own is None else ""
    to_land = "queen land -m settings" if changed and own is not None else ""
    said = changing_text.values_in(path)
    row, counts = _row(setting, said, {}), own is None
    if to_commit and name in JUDGING:
        counts = counting(layout, said).get(name, setting.default) == row["value"]
    ways = {"counts": counts, "to_commit": to_commit, "to_land": to_land}
    return {**row, "changed": changed, "by": by, **ways}


def _tell_of_landing(layout: Layout) -> None:
    """Says if the records are not where work lands now, and if a setting changes nothing there."""
    from queenbee.git.beforehand.hindrances import of_upstream  # noqa: PLC0415 - start-up
    from queenbee.git.remote.relocating import why_apart  # noqa: PLC0415 - start-up

    if why := why_apart(layout):
        tell(f"next, because {why}: queen sync setup")
    for each in of_upstream(layout):
        tell(each.sentence)
    for waits in Trust(layout).unseen(of_target(layout)):
        what = printable(waits.text)
        tell(f"nothing lands until a person agrees to all of this (queen config trust): {what}")


@command(
    show=_show_changed,
    example="queen config set land.check 'make test'\nqueen config set --add land.union NEWS.md",
    opens_hive=False,
)
@_NAME
@click.argument("values", nargs=-1, metavar="VALUE...")
@click.option("--add", is_flag=True, help="Add to the list that is set")
def set_(call: Invocation, name: str, values: tuple[str, ...], add: bool) -> dict[str, object]:
    """Set a setting for everybody who shares the hive

    Comments and the order of the file stay. The next commit of .beads/queen.toml brings it to other
    clones; the worktrees of this one have it at once. But the check, and what queen land joins,
    count once the main branch has them. In a worktree of your own, land.* changes your branch.
    """
    setting = changing_text.setting_named(name)
    if not values:
        raise InvalidInput(f"{name} needs a value", hint=f"queen config set {name} VALUE")
    return _change(call, name, changing_text.parsed(setting, list(values)), add=add)


@command(show=_show_changed, example="queen config unset land.union", opens_hive=False)
@_NAME
def unset(call: Invocation, name: str) -> dict[str, object]:
    """Remove a setting, so that its default counts"""
    return _change(call, name, None)


def _show_trusted(value: dict[str, Any]) -> None:
    if value["forgotten"]:
        say("forgotten: every command of this repository asks again")
    if value["lists"]:
        _show_agreed(value["seen"], value["waiting"])
    elif not value["forgotten"]:
        count = len(value["trusted"])
        say(f"trusted: {count} command{'s' * (count != 1)}" if count else "nothing waits for you")


def _show_agreed(seen: Sequence[dict[str, Any]], waiting: int) -> None:
    for each in seen:
        what = f"{each.get('kind')} of {each.get('from')}"
        at = format_ms(each["at_ms"])
        say(f"{at} {escaped(what)}: {escaped(str(each.get('text')))}")
    if not seen:
        say("nothing is agreed to on this machine")
    if waiting:
        verb = "s wait" if waiting != 1 else " waits"
        say(f"{waiting} command{verb} for you to look at: queen config trust")


@command(show=_show_trusted, example="queen config trust\nqueen config trust --yes")
@click.option("--yes", is_flag=True, help="Trust all that it shows, for CI; refused to agents")
@click.option("--list", "lists", is_flag=True, help="List what you have trusted here")
@click.option("--forget", is_flag=True, help="Ask again for everything")
def trust(hive: Hive, yes: bool, lists: bool, forget: bool) -> dict[str, object]:
    """Look at the commands that came from elsewhere, and let them run

    A check, a gate or a bead that came with a clone, a pull, a sync or an import runs only after
    somebody on this machine has seen its commands. A changed command asks again. What you typed
    here counts as seen. No questions on this machine: git config --global queenbee.trust all.
    """
    known, waiting = Trust(hive.layout), _of_database(hive) or _of_files(hive)
    found: dict[str, object] = {"trusted": [], "seen": [], "forgotten": forget, "lists": lists}
    found["waiting"] = len(waiting)
    if lists:
        return {**found, "seen": known.seen()}
    if is_by_agent(hive.layout):
        raise InvalidInput(
            "a person lets commands run, not an agent",
            hint="a person: in a terminal that no agent has started; an agent: queen next",
        )
    if forget:
        known.forget()
        return found
    _agree(hive, waiting, yes=yes)
    if waiting and waiting[0].kind == DATABASE:
        _take_in_files(hive.layout)  # Until that is done, the database is not used.
        # What else waits is told by what is in there.
        more = _of_files(hive)
        _agree(hive, more, yes=yes)
        waiting = [*waiting, *more]
    return {**found, "trusted": [each.to_dict() for each in waiting]}


def _of_database(hive: Hive) -> list[Proposal]:
    if hive.layout.settings.engine_kind == "files":
        return []
    from queenbee.store.carriers.postgres.agreed import unagreed  # noqa: PLC0415 - start-up

    return unagreed(hive.layout, hive.layout.settings.engine_hive)


def _take_in_files(layout: Layout) -> None:
    """Adds to the database what only the files of this clone have."""
    from queenbee.git.remote.withheld import Held, sentence  # noqa: PLC0415 - start-up
    from queenbee.store.carriers import switching  # noqa: PLC0415 - start-up
    from queenbee.store.carriers.postgres.carrying import only_here  # noqa: PLC0415 - start-up

    if counts := only_here(layout, layout.settings.engine_hive):
        held = Held(layout)
        try:
            switching.use(layout, "postgres", look=held)
        finally:
            for each in (stay := held.found()):
                tell(sentence(each))
        if came := sum(counts.values()) - len(stay):
            tell(f"{lines_counted(came)} that only the files here had: now in the database too")


def _of_files(hive: Hive) -> list[Proposal]:
    from queenbee.git.landing.judged.judging import unseen  # noqa: PLC0415 - start-up

    found = [*unseen(hive), *unseen_settings(hive.layout, hive.layout.tree, os.environ)]
    return [*{each.key: each for each in found}.values()]


def _agree(hive: Hive, waiting: list[Proposal], *, yes: bool) -> None:
    if yes:
        show_commands(hive.layout, waiting)
        Trust(hive.layout).add(waiting)
        return
    try:
        Consent.of(hive).require(waiting)
    except Untrusted as error:  # Its way out is this very command.
        error.hint = (
            "in a terminal, queen config trust asks; queen config trust --yes shows the "
            "commands, and trusts them"
        )
        raise


config: QueenGroup = group(
    "config",
    [list_, get, set_, unset, trust],
    help="Show and change the settings of the hive; alone, list them",
    example="queen config set land.check 'make test'",
    alone=list_,
)
