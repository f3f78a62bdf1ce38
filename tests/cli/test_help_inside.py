"""Help: the parts inside."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import click
import pytest
from hives import QuickQueen

from queenbee.cli.app import Invocation, QueenCommand
from queenbee.cli.main import queen as root


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, QueenCommand]]:
    """Yields every command below a group with its whole name."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        elif isinstance(command, QueenCommand):
            yield " ".join((*path, name)), command


ALL = dict(commands(root))


def examples(text: str) -> list[list[str]]:
    """Returns the words of each `queen` in the example that ends a help text."""
    lines = text.partition("Example:\n")[2].strip().splitlines()
    calls = [line.strip().replace('eval "$(', "").replace(')"', "") for line in lines]
    pieces = [piece.strip() for call in calls for piece in call.split(" | ")]
    return [shlex.split(piece)[1:] for piece in pieces if piece.startswith("queen ")]


@pytest.mark.parametrize("name", ALL)
def test_the_help_of_every_command_says_what_it_does_and_ends_with_an_example(
    quick: QuickQueen, name: str
) -> None:
    shown = quick(*name.split(), "--help")
    assert (shown.code, shown.err) == (0, "")
    lines = shown.out.splitlines()
    assert lines[0].startswith(f"Usage: queen {name} ")
    assert not lines[2].endswith(".")
    assert lines[-1].startswith("    ")
    assert examples(shown.out)
    assert quick(*name.split(), "-h").out == shown.out


@pytest.mark.parametrize("name", ALL)
def test_every_example_can_be_typed_as_it_stands(quick: QuickQueen, name: str) -> None:
    for words in examples(quick(*name.split(), "--help").out):
        assert words[: len(name.split())] == name.split()
        ALL[name].make_context(name, words[len(name.split()) :], obj=Invocation())


@pytest.mark.parametrize("name", ALL)
def test_every_option_says_what_it_is_for(name: str) -> None:
    options = [each for each in ALL[name].params if isinstance(each, click.Option)]
    assert [each.opts for each in options if not each.help] == []


def test_no_line_of_a_list_of_commands_is_cut(quick: QuickQueen) -> None:
    groups = [name for name in root.list_commands(click.Context(root)) if name not in ALL]
    for words in [[], *([each] for each in groups)]:
        listed = quick(*words, "--help").out.partition("Commands:\n" if words else "For you:\n")[2]
        assert listed
        assert not [line for line in listed.splitlines() if line.endswith("...")]


def test_every_command_of_the_manual_is_there() -> None:
    manual = """init, hive where, hive whoami, version, issue assign, claim, release, complete,
    issue assignments, reserve, reserve release, reserve renew, reserve list, reserve check, show,
    reserve overlap, reserve conflicts, issues, issue ready, doctor, hive history"""
    assert {" ".join(each.split()) for each in manual.split(",")} <= set(ALL)
    messages = "send inbox read reply thread sent delete"
    assert {f"msg {each}" for each in messages.split()} <= set(ALL)


def test_the_help_of_queen_tells_the_story_and_lists_each_command(quick: QuickQueen) -> None:
    shown = quick("--help").out
    assert "queen land -m TEXT --next" in " ".join(shown.split())
    names = [name for section in root.sections.values() for name in section]
    assert all(f"\n  {name} " in shown for name in names)
    assert len(names) <= 38
    assert len(shown.splitlines()) <= 60
