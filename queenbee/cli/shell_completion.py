"""What a shell completes: ids, droids, issues, files. Loaded only while it asks.

A shell inserts a completion into the command line as it is. So only words that it would not change
are offered: an issue that is called `$(rm -rf ~)` has to be typed. File names are completed by the
shell, which knows how to quote them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, shell_complete
from click.types import StringParamType

from queenbee.core.names import ALWAYS_KNOWN, EVERYONE
from queenbee.core.text import is_plain, one_line, shell_word
from queenbee.errors import Conflict, NotFound, QueenError
from queenbee.library.hive import Hive
from queenbee.store.git_files.worktrees import worktrees
from queenbee.store.whole_files import read_document, write_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from queenbee.core.beads import Issue
    from queenbee.core.records import Record

    Offer = tuple[str, str]
    """A word, and what it is."""
    Source = Callable[[Hive, str], Iterable[Offer]]

VARIABLE = "_QUEEN_COMPLETE"
_MOST = 200
"""So many are more than anyone reads."""
_RECENT = 50
_HELP_CHARS = 60
_DURATIONS = ("15m", "30m", "1h", "2h", "1d")
_FILES = {"PATH", "PATTERN", "FILE", "PLAN.md", "A", "B"}
"""What is a file, as the help calls it."""


class Known(StringParamType):
    """A text of which some values are known."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Returns the known values that begin so. A hive that cannot be read has none."""
        call = ctx.obj
        offers: list[Offer] = []
        try:
            hive = Hive.open(
                droid=getattr(call, "actor", None), beads_dir=getattr(call, "beads_dir", None)
            )
            offers = [
                each
                for each in dict(self.source(hive, incomplete)).items()
                if each[0].startswith(incomplete) and is_plain(each[0])
            ]
        except (QueenError, OSError):
            pass
        # The help is others' text: on one line, since a line is a completion.
        return [
            CompletionItem(word, help=one_line(text, _HELP_CHARS) or None)
            for word, text in offers[:_MOST]
        ]


class PathType(StringParamType):
    """The name of a file or of a folder, which the shell completes."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Returns the one item that tells the shell to complete a name."""
        return [CompletionItem(incomplete, type=self.kind)]


def answer(queen: click.Command, call: object) -> int:
    """Answers the shell that asks, or prints its script, and returns the exit status."""
    return shell_complete(queen, {"obj": call}, "queen", VARIABLE, os.environ[VARIABLE])


def teach(ctx: click.Context, parameters: Iterable[click.Parameter]) -> None:
    """Gives the parameters of a command the types that know their values."""
    command = _path(ctx)
    for each in parameters:
        # A choice knows its values.
        if isinstance(each.type, StringParamType):
            found = _type_of(command, each)
            if found is not None:
                each.type = found


def is_bash() -> bool:
    """Returns whether the shell that asks shows no help beside a completion."""
    return os.environ.get(VARIABLE, "").startswith("bash")


def _path(ctx: click.Context) -> str:
    """Returns the command as it is typed, such as `msg send`."""
    names: list[str] = []
    while ctx.parent is not None:
        names.insert(0, ctx.info_name or "")
        ctx = ctx.parent
    return " ".join(names)


def _type_of(command: str, parameter: click.Parameter) -> StringParamType | None:
    """Returns the type for a parameter, or None for any text."""
    name = parameter.name or ""
    metavar = (parameter.metavar or "").partition("|")[0].strip("[].")
    source = _OF_COMMANDS.get((command, name)) or _OF_NAMES.get(name) or _OF_METAVARS.get(metavar)
    if source is not None:
        return Known(source) if source is not _anything else None
    if metavar == "DIR":
        return PathType("dir")
    return PathType("file") if metavar in _FILES else None


def _anything(hive: Hive, typed: str) -> Iterable[Offer]:
    """Stands for a text that nothing is known about, such as the id of a new issue."""
    return ()


def _issues(hive: Hive, typed: str) -> Iterable[Offer]:
    """Returns the issues that are not done; the others too if none of these begins so."""
    issues = hive.issues.all()
    open_ = {key: each for key, each in issues.items() if not each.done}
    if not any(key.startswith(typed) for key in open_):
        open_ = issues
    return _titled(open_.values())


def _closed(hive: Hive, typed: str) -> Iterable[Offer]:
    return _titled(each for each in hive.issues.all().values() if each.done)


def _taken(hive: Hive, typed: str) -> Iterable[Offer]:
    """Returns the actor's issues; without a name, or without one, those that anybody has."""
    active = hive.assignments.find()
    mine = [each for each in active if each.droid == hive.actor_or_none]
    issues = hive.issues.all()
    for each in mine or active:
        issue = issues.get(each.issue_id)
        yield each.issue_id, issue.title if issue is not None else f"{each.droid} has it"


def _ready(hive: Hive, typed: str) -> Iterable[Offer]:
    """Returns what the actor could take; any open issue if nothing of that begins so."""
    taken = {each.issue_id for each in hive.assignments.find()}
    ready = hive.issues.ready(actor=hive.actor_or_none)
    ready = [each for each in ready if each.id not in taken]
    if not any(each.id.startswith(typed) for each in ready):
        return _issues(hive, typed)
    return _titled(ready)


def _droids(hive: Hive, typed: str) -> Iterable[Offer]:
    return [(name, "") for name in sorted({*hive.droids.known(), *ALWAYS_KNOWN})]


def _addressees(hive: Hive, typed: str) -> Iterable[Offer]:
    return [(EVERYONE, "all droids but you"), *_droids(hive, typed)]


def _mail(hive: Hive, typed: str) -> Iterable[Offer]:
    """Returns the newest messages to the actor."""
    if hive.actor_or_none is None:
        return []
    messages = hive.messages.inbox(limit=_RECENT)
    ids = _ids(hive, "messages", messages, typed)
    return [(ids[each.id], f"{each.from_}: {each.subject}") for each in messages]


def _sent(hive: Hive, typed: str) -> Iterable[Offer]:
    if hive.actor_or_none is None:
        return []
    messages = hive.messages.sent(limit=_RECENT)
    ids = _ids(hive, "messages", messages, typed)
    return [(ids[each.id], f"to {each.to}: {each.subject}") for each in messages]


def _threads(hive: Hive, typed: str) -> Iterable[Offer]:
    return [*_mail(hive, typed), *_issues(hive, typed)]


def _leases(hive: Hive, typed: str) -> Iterable[Offer]:
    """Returns the actor's leases; without a name, all of them."""
    leases = hive.reservations.find(droid=hive.actor_or_none)
    ids = _ids(hive, "reservations", leases, typed)
    return [(ids[each.id], each.pattern) for each in leases]


def _records(hive: Hive, typed: str) -> Iterable[Offer]:
    given = hive.assignments.find()
    ids = _ids(hive, "assignments", given, typed)
    owned = [(ids[each.id], f"{each.droid} has {each.issue_id}") for each in given]
    return [*_mail(hive, typed), *_leases(hive, typed), *owned]


def _worktrees(hive: Hive, typed: str) -> Iterable[Offer]:
    linked = (each for each in worktrees(hive.layout) if each.linked)
    return [(os.path.basename(each.path), each.branch or "") for each in linked]


def _agents(hive: Hive, typed: str) -> Iterable[Offer]:
    from queenbee.agents.setup import AGENTS  # noqa: PLC0415 - start-up

    return dict.fromkeys(AGENTS, "").items()


def _statuses(hive: Hive, typed: str) -> Iterable[Offer]:
    return [(name, "") for name in sorted({each.status for each in hive.issues.all().values()})]


def _types(hive: Hive, typed: str) -> Iterable[Offer]:
    return [(name, "") for name in sorted({each.issue_type for each in hive.issues.all().values()})]


def _durations(hive: Hive, typed: str) -> Iterable[Offer]:
    return dict.fromkeys(_DURATIONS, "").items()


def _titled(issues: Iterable[Issue]) -> list[Offer]:
    return [(each.id, each.title) for each in issues]


def _ids(hive: Hive, kind: str, records: Iterable[Record], typed: str) -> dict[str, str]:
    """Returns how each record is offered: by the short end that lists show, unless a whole id was
    begun.
    """
    whole = [each.id for each in records]
    return {each: each for each in whole} if typed.startswith("q") else hive.short_ids(kind, whole)


_OF_COMMANDS: dict[tuple[str, str], Source] = {
    (command, name): source
    for source, name, commands in (
        (_anything, "issue_id", ["issue new"]),
        (_closed, "issue_ids", ["issue reopen"]),
        (_ready, "issue_ids", ["claim"]),
        (_ready, "issue_id", ["worktree add"]),
        (_worktrees, "name", ["worktree remove"]),
        (_taken, "issue_id", ["complete", "release"]),
        (_taken, "issue_ids", ["land"]),
        (_addressees, "words", ["msg send"]),
        (_mail, "ids", ["msg read", "msg ack"]),
        (_mail, "message_id", ["msg reply"]),
        (_sent, "message_id", ["msg delete"]),
        (_threads, "identifier", ["msg thread"]),
        (_leases, "ids", ["reserve release", "reserve renew"]),
        (_records, "identifier", ["hive history"]),
        (_agents, "agents", ["setup"]),
        (_statuses, "status", ["issues", "issue edit"]),
        (_types, "issue_type", ["issue edit", "issue new"]),
    )
    for command in commands
}
"""What is known about a parameter of one command."""
_OF_NAMES: dict[str, Source] = {
    **dict.fromkeys(("issue_id", "issue_ids", "issues"), _issues),
    **dict.fromkeys(("droid", "from_", "actor", "assignee"), _droids),
    **dict.fromkeys(("reply_to", "after"), _mail),
    **dict.fromkeys(("ttl", "ttl_s", "wait", "timeout"), _durations),
}
"""What is known about a parameter of this name, in any command."""
_OF_METAVARS: dict[str, Source] = dict.fromkeys(("ISSUE", "BLOCKER", "BEAD"), _issues)


_PLACES = {
    "bash": (("XDG_DATA_HOME", ".local/share"), "bash-completion/completions/queen"),
    "zsh": (("XDG_DATA_HOME", ".local/share"), "zsh/site-functions/_queen"),
    "fish": (("XDG_CONFIG_HOME", ".config"), "fish/completions/queen.fish"),
}
"""Where each shell looks for the completions of a user: a variable or a folder, and a file."""
_NEXT = {
    "bash": "open a new shell; it needs the package bash-completion",
    "zsh": "add this to ~/.zshrc, before compinit: fpath=({folder} $fpath)",
    "fish": "open a new shell",
}


def install(shell: str, script: str, env: Mapping[str, str]) -> tuple[str, str]:
    """Writes a completion script to where a shell looks for it; returns the path, and what is left
    to be done. Raises `Conflict` if another file is there, and `Unwritable`.
    """
    (variable, folder), name = _PLACES[shell]
    base = env.get(variable, "")
    base = base if os.path.isabs(base) else os.path.join(os.path.expanduser("~"), folder)
    path = os.path.join(base, name)
    _refuse_other(path, script)
    write_named(path, script.encode())
    return path, _NEXT[shell].format(folder=shell_word(os.path.dirname(path)))


def _refuse_other(path: str, script: str) -> None:
    """Raises `Conflict` if a file, also behind a link, is none that this has written before: one
    that begins and ends as the script does, whatever an older version has in between.
    """
    try:
        there = read_document(path).decode(errors="replace").split()
    except NotFound:
        return
    ours = script.split()
    if there[:3] != ours[:3] or there[-1:] != ours[-1:]:
        raise Conflict(
            f"{path} is not a file of queen completion; nothing was changed",
            hint="move it away, then run it again",
            path=path,
        )
