"""Builds the command line of every process that QueenBee starts.

Text from elsewhere, such as a title, a path or a setting, is a value: it is joined to its name
(`--name=value`), stands behind `--`, or gets a space before a dash. So it is never an option.
`tests/test_command_lines.py` finds whatever starts a process in another way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from queenbee.errors import InvalidInput

_POSIX = ("/bin/sh", "-c")
OPTIONS = "{options}"
"""Where the options go in a template."""


class CommandLine(tuple[str, ...]):
    """A program and its arguments. Only this module makes one."""

    __slots__ = ()


def command_line(
    program: str, *words: str, values: Iterable[str] | None = None, **named: str
) -> CommandLine:
    """Returns a program with literal words, `--name=value` for each name, and values behind `--`.

    A name that is a word of Python's has an underscore at its end: `as_`.
    """
    joined = (f"--{name.rstrip('_').replace('_', '-')}={value}" for name, value in named.items())
    behind = () if values is None else ("--", *values)
    return CommandLine((program, *words, *joined, *behind))


def git_line(cwd: str, arguments: Iterable[str]) -> CommandLine:
    """Returns a command line of git. The test looks at each call that the arguments come from."""
    return CommandLine(("git", "-C", cwd, *arguments))


def shell_line(text: str, *arguments: str, by: Sequence[str] = _POSIX) -> CommandLine:
    """Returns what runs a text that is a command on purpose: our own, or one of a setting, a check
    or a person that is documented as a command. The arguments are its `$0`, `$1` and so on.
    """
    return CommandLine((*by, no_option(text), *arguments))


def typed_line(words: Iterable[str]) -> CommandLine:
    """Returns a program with arguments that somebody gave as a command, word by word."""
    return CommandLine(words)


def filled_line(template: Iterable[str], options: Iterable[str], **texts: str) -> CommandLine:
    """Returns a literal command line in which texts stand for words such as `{prompt}`, and options
    for `{options}`. Not every client knows `--`: a text that begins with a dash gets a space.
    """
    words: list[str] = []
    for word in template:
        if word == OPTIONS:
            words += options
        else:
            name = word[1:-1] if word.startswith("{") else ""
            words.append(no_option(texts[name]) if name else word)
    return CommandLine(words)


def no_option(text: str) -> str:
    """Returns a text that no program takes for an option: with a space before a dash."""
    return f" {text}" if text.startswith("-") else text


def no_dash(text: str) -> str:
    """Returns a revision, a remote or a file for git, unchanged. Raises `InvalidInput` for one that
    git could take for an option.
    """
    if text.startswith("-"):
        raise InvalidInput(
            f"{text[:80]!r} is no name of a branch, a commit or a remote: it begins with a dash",
            hint="git branch --all, or git remote, lists the names",
        )
    return text
