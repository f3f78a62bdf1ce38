"""The man page, made from the help: one section for each command."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROTECTED = re.compile(r"^([.'])", re.MULTILINE)
_EXAMPLE = "\b\nExample:\n"


def man_page(queen: click.Group, version: str) -> str:
    """Returns `queen(1)` in roff."""
    root = click.Context(queen, info_name="queen")
    summary, _, more = (queen.help or "").partition("\n")
    parts = [
        f'.TH QUEEN 1 "" "QueenBee {version}" "User Commands"',
        f".SH NAME\nqueen \\- {_text(summary.rstrip('.'))}",
        ".SH SYNOPSIS\n.B queen\n[\\fIOPTION\\fR]... \\fICOMMAND\\fR [\\fIARGUMENT\\fR]...",
        f".SH DESCRIPTION\n{_text(more)}",
        ".SH OPTIONS\nEvery command takes these.",
        *_options(queen, root),
        ".SH COMMANDS",
        *(part for context in _leaves(root) for part in _command(context)),
    ]
    return "\n".join(parts) + "\n"


def _leaves(context: click.Context) -> Iterator[click.Context]:
    """Yields each command that does something, in the order of the help."""
    group = context.command
    if not isinstance(group, click.Group):
        yield context
        return
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None:
            yield from _leaves(click.Context(command, info_name=name, parent=context))


def _command(context: click.Context) -> Iterator[str]:
    command = context.command
    usage = " ".join(command.collect_usage_pieces(context))
    yield f".SS {_text(f'{context.command_path} {usage}')}"
    for paragraph in (command.help or "").split("\n\n"):
        yield f".PP\n{_text(' '.join(paragraph.split()))}"
    root = context.find_root().command
    common = {each.name for each in root.params}
    yield from _options(command, context, without=common)
    example = (command.epilog or "").removeprefix(_EXAMPLE)
    if example:
        yield f".PP\nExample:\n.PP\n.nf\n.RS\n{_text(example)}\n.RE\n.fi"


def _options(
    command: click.Command, context: click.Context, without: frozenset[str] | set[str] = frozenset()
) -> Iterator[str]:
    for each in command.params:
        record = each.get_help_record(context) if each.name not in without else None
        if record is not None and record[1]:
            yield f".TP\n.B {_text(record[0])}\n{_text(record[1])}"


def _text(text: str) -> str:
    """Returns a text that roff takes for nothing else."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return _PROTECTED.sub(r"\\&\1", escaped)
