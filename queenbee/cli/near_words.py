"""What somebody means who types a word that is no command: the command, and the corrected line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from queenbee.core.names import PERSON
from queenbee.core.text import shell_word

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MEANT = {
    word: command
    for command, words in {
        "status": "stat st who ps top agents",
        "claim": "take grab pick issue-claim issue-take",
        "release": "unclaim unassign give-back issue-release",
        "complete": "done finish issue-complete issue-done",
        "land": "merge push submit pr commit",
        "next": "issue-next",
        "issue new": "add new create todo task",
        "issue edit": "update set modify issue-update issue-set issue-modify",
        "watch": "board dashboard ui",
        "issues": "ls list tasks backlog",
        "show": "view cat issue-show issue-view",
        "reserve": "lock lease",
        "reserve list": "leases locks reservations reserved",
        "reserve release": "unlock unreserve",
        "reserve renew": "renew extend",
        "msg send": "tell say write ask message mail-send msg-ask",
        "msg inbox": "mail messages",
        "bead verify": "bead-check bead-run",
        "undo": "revert rollback redo",
        "log": "history events",
        "start": "run launch team spawn",
        "config": "settings setting",
        "hive whoami": "me name",
        "setup --undo": "deinit uninit uninstall leave disconnect disable teardown",
        "issue delete": "rm delete remove issue-rm issue-remove",
        "issue dep": "block blocks depend depends",
        "worktree": "wt worktrees",
        "watch --web": "web browser",
        "issue reopen": "restore undelete issue-restore issue-undelete",
    }.items()
    for word in words.split()
}
"""The command that a word means. `issue-take` is `take` after `issue`."""


WAYS = {"stop": "Ctrl-C in the terminal of queen start"}
"""What to do instead, where no command does it."""
TAKING_BACK = (
    "queen undo, for your last command; for work that landed as COMMIT (queen show ISSUE): "
    "git diff-tree -p --binary COMMIT COMMIT~ -- ':/!.beads' | git apply -3 && git commit "
    "-m MESSAGE && queen land; then queen issue reopen ISSUE"
)
"""What `queen undo ISSUE` may mean."""
_TEXTS = frozenset(("title", "text", "body"))
"""Arguments that are one text, which needs quotes."""
_INSIDE: dict[str, dict[str, tuple[str, ...]]] = {
    "issue dep": {"add": (), "remove": ("--remove",), "rm": ("--remove",)},
    "issues": {"list": (), "ls": ()},
}
"""Words that others have after these commands, and what stands for them here."""


def meant(noun: str, typed: str, rest: Sequence[str]) -> str | None:
    """Returns the command that a word means, typed after `queen` or after a `noun`."""
    if typed == "set" and not noun and rest and "." in rest[0]:
        return "config set"
    return _MEANT.get(f"{noun}-{typed}" if noun else typed)


def instead_of(noun: str, words: Sequence[str]) -> str | None:
    """Returns the command for words that are none: a title after `issue`, a droid after `msg`, a
    setting after `config`.
    """
    if noun == "config":
        return "config set" if words[1:] and not words[1].startswith("-") else "config get"
    if noun == "issue" and " " in words[0]:
        return "issue new"
    return "msg send" if noun == "msg" and len(words) > 1 else None


def beside(command: str, words: Sequence[str]) -> str | None:
    """Returns the command that takes the words which this one does not."""
    if command == "issues" and words[:1] in (["new"], ["edit"], ["close"]):
        return "issue"
    if words[:1] and words[0] in _INSIDE.get(command, {}):
        return command
    named = {"next": "claim", "issues": "show", "report": "report -o"}
    return named.get(command)


def line(context: click.Context, command: str, rest: Iterable[str]) -> str:
    """Returns the corrected line; if that is not all it needs, the command's help."""
    words = [each for each in rest if each != "--json"]
    if words[:1] and words[0] in command.split():  # `new issue TITLE`
        words = words[1:]
    if words and (instead := _INSIDE.get(command, {}).get(words[0])) is not None:
        words = [*words[1:], *instead]
    if command == "msg send" and len(words) == 1 and " " in words[0]:
        words = [PERSON, *words]
    if not words and _needs_more(context.find_root(), command):
        words = ["--help"]
    return " ".join(["queen", command, *map(shell_word, words)])


def quoted(context: click.Context, arguments: Sequence[str]) -> str | None:
    """Returns the line with one text in quotes, which ends what was typed in several words; None
    if the command takes none, or options stand between the words.
    """
    command = context.command
    of_line = [each for each in command.params if isinstance(each, click.Argument)]
    if not of_line or of_line[-1].name not in _TEXTS:
        return None
    opts, rest, _ = command.make_parser(context).parse_args([*arguments])
    words = [*(str(opts[str(each.name)]) for each in of_line), *rest]
    begins = (at for at, word in enumerate(arguments) if word == words[0])
    at = next((x for x in begins if [*arguments[x : x + len(words)]] == words), None)
    if at is None:
        return None
    last = len(of_line) - 1
    right = [*words[:last], " ".join(words[last:])]
    whole = [*arguments[:at], *right, *arguments[at + len(words) :]]
    return " ".join([context.command_path, *map(shell_word, whole)])


def _needs_more(root: click.Context, command: str) -> bool:
    found: click.Command | None = root.command
    is_whole = command in found.list_commands(root) if isinstance(found, click.Group) else False
    words = [command] if is_whole else [x for x in command.split(" ") if not x.startswith("-")]
    for word in words:
        found = found.get_command(root, word) if isinstance(found, click.Group) else None
    return found is None or isinstance(found, click.Group) or any(x.required for x in found.params)
