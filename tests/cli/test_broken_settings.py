"""Settings that cannot be read stop nothing that does not need them: each setting, broken in each
way, with each command."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from acting import install_guard
from entry_points import run_hook
from hives import QuickQueen, commit_file, git, write_lines

from queenbee.store.settings import SETTINGS, load

GOOD = '# ours\nttl = "90m"\n\n[land]\ncheck = "true"\n'
DOUBLE = f'{GOOD}\n[hook]\nstop = "off"\n\n[land]\nunion = ["A.md"]\n'


def broken_ways() -> list[tuple[str, bytes]]:
    """Returns the ways in which the whole file can be broken."""
    return [
        ("a table twice", DOUBLE.encode()),
        ("conflict marks", GOOD.replace("[land]", "<<<<<<< HEAD\n[land]").encode()),
        ("cut off", GOOD.encode()[:-3]),
        ("not UTF-8", GOOD.encode() + b'x = "\xff"\n'),
        ("deeply nested", GOOD.encode() + b"x = " + b"[" * 5000 + b"]" * 5000),
        ("a table that is a value", b"land = 3\n"),
        ("a key of thousands of parts", b".".join([b"a"] * 3_000) + b" = 1\n"),
        ("a number of thousands of digits", b'rotate_at = "' + b"9" * 5_000 + b'MiB"\n'),
    ]


def wrong_values() -> list[tuple[str, bytes]]:
    """Returns each setting, broken in each way."""
    wrong = (True, -1, "no such value", ["a\nb"], {"x": 1}, 10**12, "")
    return [
        (f"{each.name} = {value!r}", f"{each.name} = {_toml(value)}\n".encode())
        for each in SETTINGS
        for value in wrong
        if each.type.read(value) is None
    ]


def _toml(value: object) -> str:
    return "{x = 1}" if isinstance(value, dict) else json.dumps(value)


COMMANDS = (
    ("status",), ("msg", "send", "bob", "hello"), ("msg", "inbox"), ("show", "q-1"),
    ("issues",), ("issue", "ready"), ("config", "list"), ("config", "get", "land.check"),
    ("prime",),
    ("hive", "where"), ("hive", "whoami"), ("prompt",), ("reserve", "a.py"), ("reserve", "list"),
    ("reserve", "renew", "--all"), ("reserve", "release", "a.py"), ("reserve", "check", "a.py"),
    ("claim", "q-1"),
    ("release", "q-1"), ("issue", "assign", "q-1", "ann"), ("next",), ("note", "more"),
    ("complete", "q-1"),
    ("start", "--agent", "./agent.sh", "--size", "1", "--yolo"),
    ("issue", "assignments"), ("worktree", "list"), ("guard", "check"),
    ("issue", "new", "more"), ("hive", "stats"), ("worktree", "collisions"),
    ("reserve", "conflicts"), ("hive", "index", "status"),
    ("msg", "read"), ("msg", "sent"), ("msg", "search", "hello"),
    ("msg", "notify", "--once"), ("issue", "list"), ("issue", "edit", "q-1", "--priority", "1"),
    ("issue", "wait", "q-1"), ("bead", "list"), ("gate", "status"), ("hive", "engine", "status"),
    ("reserve", "overlap", "a", "a"),
    ("hive", "rotate", "--older-than", "1d"), ("hive", "index", "export"),
    ("setup", "claude", "--dry-run"),
    ("worktree", "add", "api"), ("worktree", "remove", "api"), ("report",),
    ("hive", "history", "q-1"), ("guard", "install"),
    ("version",), ("help",), ("completion", "bash"),
)  # fmt: skip
_NEED_NONE = frozenset(
    (
        "completion",
        "engine",
        "guard",
        "help",
        "notify",
        "prompt",
        "setup",
        "version",
        "where",
        "whoami",
    )
)
"""Those that say nothing of it: they need no setting, or run beside the work."""


@pytest.fixture
def toml(quick: QuickQueen, repo: Path) -> Path:
    """The settings of a hive that has been used with good ones."""
    path = repo / ".beads" / "queen.toml"
    path.write_text(GOOD)
    quick("msg", "send", "bob", "first", as_="ann")
    commit_file(repo, "agent.sh", "#!/bin/sh\n")
    (repo / "agent.sh").chmod(0o755)
    issue = {"id": "q-1", "title": "x", "status": "open"}
    write_lines(repo / ".beads" / "issues.jsonl", issue)
    assert quick("status", as_="ann").code == 0
    return path


def run_all(quick: QuickQueen, path: Path) -> None:
    for command in COMMANDS:
        ran = quick(*command, as_="ann")
        if command == ("hive", "engine", "status"):
            assert ran.code == 1 and str(path) in ran.out
            continue
        assert ran.code == 0 or (command[1:2] in (("whoami",), ("stats",)) and ran.code == 2), (
            command,
            ran,
        )
        if not _NEED_NONE.intersection(command[:2]):
            assert ran.err.count(f"{path}") >= 1, (command, ran)
            assert "the last good settings count" in ran.err
    doctor = quick("doctor", as_="ann")
    assert (doctor.code, str(path) in doctor.out) == (1, True)


@pytest.mark.some(2)
@pytest.mark.parametrize(("way", "text"), broken_ways(), ids=[way for way, _ in broken_ways()])
def test_every_command_works_with_the_last_good_settings(
    quick: QuickQueen, toml: Path, way: str, text: bytes
) -> None:
    toml.write_bytes(text)
    run_all(quick, toml)
    assert quick("config", "get", "land.check", as_="ann").out == "true\n"
    assert toml.read_bytes() == text


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to("/etc/passwd")])
def test_so_it_does_where_the_file_is_none(
    quick: QuickQueen, toml: Path, make: Callable[[Path], None]
) -> None:
    toml.unlink()
    make(toml)
    run_all(quick, toml)


@pytest.mark.some(24)
@pytest.mark.parametrize(("way", "text"), wrong_values(), ids=[way for way, _ in wrong_values()])
def test_each_wrong_value_leaves_status_and_messages_alone(
    quick: QuickQueen, toml: Path, way: str, text: bytes
) -> None:
    toml.write_bytes(text)
    for command in (("status",), ("msg", "send", "bob", "hello")):
        ran = quick(*command, as_="ann")
        assert (ran.code, way.partition(" ")[0] in ran.err) == (0, True), ran
    assert quick("config", "get", "ttl", as_="ann").out == "90m\n"


@pytest.mark.thorough
@pytest.mark.parametrize(("way", "text"), wrong_values(), ids=[way for way, _ in wrong_values()])
def test_each_wrong_value_with_each_command(
    quick: QuickQueen, toml: Path, way: str, text: bytes
) -> None:
    toml.write_bytes(text)
    run_all(quick, toml)


def test_the_edit_hook_still_keeps_others_out(quick: QuickQueen, repo: Path, toml: Path) -> None:
    assert quick("reserve", "a.py", as_="bob").code == 0
    toml.write_text(DOUBLE)
    event = {"hook_event_name": "PreToolUse", "session_id": "s", "cwd": str(repo),
             "tool_name": "Edit", "tool_input": {"file_path": str(repo / "a.py")}}  # fmt: skip
    answer = run_hook(json.dumps(event).encode(), {"QUEEN_DROID": "ann"}, str(repo))
    assert answer is not None
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_the_line_and_who_brought_it_in_are_named(
    quick: QuickQueen, repo: Path, toml: Path
) -> None:
    toml.write_text(DOUBLE)
    git(repo, "add", ".beads/queen.toml")
    git(repo, "commit", "-qm", "union", "--author", "fern <fern@example.com>")
    commit = git(repo, "rev-parse", "HEAD")[:10]
    said = quick("status", as_="ann").err
    assert "at line 10" in said
    assert f"(fern in {commit})" in said
    assert said.count("\n") == 1


def test_a_wrong_value_names_its_line(quick: QuickQueen, toml: Path) -> None:
    toml.write_text('ttl = "1h"\n[land]\n# x\nstrategy = "octopus"\n')
    assert "land.strategy cannot be 'octopus', line 4" in quick("status", as_="ann").err


def test_settings_that_were_never_good_write_nothing(quick: QuickQueen, repo: Path) -> None:
    """A fresh clone of them: a guess could write where the team does not read."""
    path = repo / ".beads" / "queen.toml"
    path.write_text(DOUBLE)
    ran = quick("msg", "send", "bob", "hi", as_="ann")
    assert (ran.code, "nothing can be written" in ran.err) == (7, True)
    assert quick("status", as_="ann").code == 0
    assert quick("doctor", "--fix", as_="ann").code == 0
    assert quick("msg", "send", "bob", "hi", as_="ann").code == 0


def test_the_last_good_ones_are_those_that_were_last_read(quick: QuickQueen, toml: Path) -> None:
    toml.write_text('ttl = "80m"\n')
    assert quick("status", as_="ann").code == 0
    toml.write_text(DOUBLE)
    assert quick("config", "get", "ttl", as_="ann").out == "80m\n"


def test_what_was_just_set_is_the_last_good(quick: QuickQueen, repo: Path, toml: Path) -> None:
    toml.unlink()
    assert quick("init", "--check", "true", as_="ann").code == 0
    toml.write_text(DOUBLE)
    assert quick("config", "get", "land.check", as_="ann").out == "true\n"


def test_a_clone_brings_no_last_good_settings(quick: QuickQueen, repo: Path, toml: Path) -> None:
    """Only what was good here counts, wherever a clone puts a file of that name."""
    planted = 'ttl = "1s"\n'
    for folder in (".beads", ".beads/.queenbee", "queenbee"):
        (repo / folder).mkdir(exist_ok=True)
        (repo / folder / "last-good.toml").write_text(planted)
    toml.write_text(DOUBLE)
    assert quick("config", "get", "ttl", as_="ann").out == "90m\n"


def test_doctor_makes_one_table_of_two(quick: QuickQueen, toml: Path) -> None:
    toml.write_text(DOUBLE)
    assert quick("doctor", "--fix", as_="ann").code == 0
    found = load(str(toml.parent), {})
    assert (found.land_check, found.land_union, found.hook_stop) == ("true", ("A.md",), "off")
    assert toml.read_text().startswith("# ours\n")


def test_doctor_leaves_what_contradicts_itself_to_people(quick: QuickQueen, toml: Path) -> None:
    text = f'{GOOD}[land]\ncheck = "false"\n'
    toml.write_text(text)
    ran = quick("doctor", "--fix", as_="ann")
    assert (ran.code, toml.read_text()) == (1, text)


def test_the_guard_refuses_settings_that_nobody_could_read(
    quick: QuickQueen, repo: Path, toml: Path
) -> None:
    toml.write_text(DOUBLE)
    git(repo, "add", ".beads/queen.toml")
    ran = quick("guard", "check", "--staged", as_="ann")
    assert (ran.code, "commit refused" in ran.err) == (7, True)
    assert quick("guard", "check", "--staged", as_="ann", env={"QUEEN_GUARD": "warn"}).code == 0


def test_a_repair_passes_the_guard_from_a_worktree(
    quick: QuickQueen, repo: Path, toml: Path, tmp_path: Path
) -> None:
    toml.write_text(DOUBLE)
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "broken")
    install_guard(repo)
    tree = tmp_path / "one"
    git(repo, "worktree", "add", "-q", str(tree), "-b", "one")
    commit_file(tree, ".beads/queen.toml", GOOD)
    assert quick("land", "--check", "true", as_="ann", cwd=tree).code == 0
    assert toml.read_text() == GOOD


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "text",
    [each for way, each in broken_ways() if not way.startswith(("a table that", "a number"))],
)
def test_what_doctor_advises_makes_any_text_readable_again(
    quick: QuickQueen, repo: Path, toml: Path, text: bytes
) -> None:
    toml.write_bytes(text)
    findings = quick("doctor", "--json", as_="ann").json
    (hint,) = (each["hint"] for each in findings if each["code"] == "unreadable")
    _, _, copy = hint.partition("cp ")
    if copy:
        assert quick("doctor", "--fix", as_="ann").code == 1
        subprocess.run(["cp", *shlex.split(copy)], check=True, cwd=repo)
    assert quick("doctor", "--fix", as_="ann").code == 0
    assert quick("config", "get", "ttl", as_="ann").out == "90m\n"
