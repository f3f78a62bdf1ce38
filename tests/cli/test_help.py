"""Help, examples, suggestions, completion: what teaches the command line to whoever types it."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from hives import COMMAND, Queen, QuickQueen

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
    assert len(names) <= 26
    assert len(shown.splitlines()) <= 45


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("calim", "claim"),
        ("reserv", "reserve"),
        ("Inbox", "msg inbox"),
        ("Next", "next"),
        ("inbox", "msg inbox"),
        ("send", "msg send"),
        ("install", "guard install"),
        ("zzz", None),
    ],
)
def test_a_mistyped_command_suggests_the_nearest(
    quick: QuickQueen, typed: str, meant: str | None
) -> None:
    refused = quick(typed, "--json")
    assert (refused.code, refused.error["code"]) == (2, "usage")
    suggestion = f" Did you mean '{meant}'?" if meant else ""
    assert refused.error["message"] == f"No such command {typed!r}.{suggestion}"
    assert refused.error["hint"] == f"queen {meant + ' ' if meant else ''}--help"


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("claim x --resaon y", "--reason"),
        ("msg inbox --unraed", "--unread"),
        ("reserve x --exclusive --sharde", "--shared"),
        ("--jsn reserved", "--json"),
    ],
)
def test_a_mistyped_option_suggests_the_nearest(quick: QuickQueen, words: str, meant: str) -> None:
    refused = quick(*words.split())
    assert refused.code == 2
    assert "No such option" in refused.err
    assert meant in refused.err or "--exclusive" in refused.err


def test_a_mistyped_droid_suggests_the_nearest(quick: QuickQueen, repo: Path) -> None:
    droids = repo / ".factory" / "droids"
    droids.mkdir(parents=True)
    for name in ("ui-engineer", "reviewer"):
        (droids / f"{name}.md").touch()
    for words in (("msg", "send", "revewer", "x"), ("issue", "assign", "qb-1", "revewer")):
        refused = quick(*words, "--json", as_="ui-engineer")
        assert (refused.code, refused.error["code"]) == (4, "unknown_droid")
        assert refused.error["hint"] == "did you mean 'reviewer'?"
    stranger = quick("claim", "qb-1", "--json", as_="ui-enginer")
    assert stranger.error["hint"] == "did you mean 'ui-engineer'?"


# Completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_completion_script(queen: Queen, shell: str) -> None:
    printed = queen("completion", shell)
    assert (printed.code, printed.err) == (0, "")
    assert f"_QUEEN_COMPLETE={shell}_complete" in printed.out
    assert "queen" in printed.out


def completed(queen: Queen, words: str) -> set[str]:
    """Returns what bash would offer for the last word of a command line."""
    env = {"_QUEEN_COMPLETE": "bash_complete", "COMP_WORDS": words}
    done = subprocess.run(
        COMMAND,
        cwd=queen.cwd,
        env=queen.environment(None, {**env, "COMP_CWORD": str(len(words.split(" ")) - 1)}),
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in done.stderr
    return {line.partition(",")[2] for line in done.stdout.splitlines()}


def test_completion_offers_commands_options_and_choices(queen: Queen) -> None:
    assert completed(queen, "queen re") == {"reserve", "release", "report"}
    assert completed(queen, "queen msg re") == {"read", "reply"}
    assert "--shared" in completed(queen, "queen reserve --sh")
    assert completed(queen, "queen msg send --importance u") == {"urgent"}
