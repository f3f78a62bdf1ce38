"""The real process: interrupts, readers that leave, terminals, bugs."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from bead_files import put_bead, ralph_bead
from hives import COMMAND, Queen, QuickQueen, records, snapshot

from queenbee import Hive

pytestmark = pytest.mark.slow


def waiter(queen: Queen, who: str, *arguments: str) -> subprocess.Popen[str]:
    """Starts a `queen` and returns once it waits: it has told of the file that is not there."""
    started = queen.start("reserve", "new.py", "--wait", "60s", *arguments, as_=who)
    assert started.stderr is not None
    assert "does not exist yet" in started.stderr.readline()
    return started


# Interrupts


def test_an_interrupt_ends_a_wait_with_130_and_leaves_nothing_behind(
    queen: Queen, beads: Path, repo: Path
) -> None:
    queen("reserve", "new.py", as_="ui-engineer")
    before = snapshot(beads, repo / ".git" / "queenbee")
    waiting = waiter(queen, "reviewer")
    waiting.send_signal(signal.SIGINT)
    out, err = waiting.communicate(timeout=30)
    assert (waiting.returncode, out) == (130, "")
    assert "queen: interrupted" in err
    assert "Traceback" not in err
    assert snapshot(beads, repo / ".git" / "queenbee") == before
    assert queen("reserve", "other.py", as_="reviewer").code == 0


def test_an_interrupt_in_the_middle_of_a_command_is_130(
    quick: QuickQueen, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Hive, "messages", property(interrupted))
    ran = quick("msg", "inbox", as_="ui-engineer")
    assert (ran.code, ran.out, ran.err) == (130, "", "queen: interrupted\n")
    as_json = quick("msg", "inbox", "--json", as_="ui-engineer")
    assert (as_json.code, as_json.error["code"]) == (130, "interrupted")


# Waiting


def test_a_release_ends_the_wait(queen: Queen) -> None:
    queen("reserve", "new.py", as_="ui-engineer")
    waiting = waiter(queen, "reviewer")
    queen("reserve", "release", "new.py", as_="ui-engineer")
    out, _ = waiting.communicate(timeout=60)
    assert waiting.returncode == 0
    assert "new.py   reviewer" in out


def test_an_expiry_ends_the_wait(queen: Queen) -> None:
    queen("reserve", "new.py", "--ttl", "1s", as_="ui-engineer")
    assert queen("reserve", "new.py", "--wait", "30s", as_="reviewer").code == 0


def test_several_waiters_all_get_their_turn(queen: Queen, beads: Path) -> None:
    queen("reserve", "new.py", as_="ui-engineer")
    waiting = [waiter(queen, f"droid-{number}", "--ttl", "1s") for number in range(4)]
    queen("reserve", "release", "new.py", as_="ui-engineer")
    for each in waiting:
        each.communicate(timeout=60)
    assert [each.returncode for each in waiting] == [0] * 4
    leases = [row for row in records(beads / "queen_reservations.jsonl") if row["rev"] == 1]
    holding = sorted((row["created_at"], row["expires_at"]) for row in leases[1:])
    assert all(ends <= begins for (_, ends), (begins, _) in pairwise(holding))


def test_a_wait_that_times_out_is_busy_and_names_the_holder(queen: Queen) -> None:
    queen("reserve", "README.md", "--reason", "docs", as_="ui-engineer")
    late = queen("reserve", "README.md", "--wait", "1s", "--json", as_="reviewer")
    assert late.code == 6
    assert late.error["code"] == "busy"
    assert late.error["message"].startswith("timed out after 1s: README.md is held by ui-engineer")
    assert [holder["droid"] for holder in late.error["holders"]] == ["ui-engineer"]


# Output


def piped(queen: Queen, script: str) -> subprocess.CompletedProcess[str]:
    """Runs a shell script in which `queen` is the command and `$?` is its own status."""
    program = f'queen() {{ {" ".join(map(quoted, COMMAND))} "$@"; }}\nset -o pipefail\n{script}'
    return subprocess.run(
        ["bash", "-c", program],
        cwd=queen.cwd,
        env=queen.environment("ui-engineer", None),
        capture_output=True,
        text=True,
        timeout=60,
    )


def quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


@pytest.mark.parametrize("arguments", ["msg inbox --limit 5000", "msg inbox --json --limit 5000"])
def test_a_closed_pipe_is_not_a_failure(
    queen: Queen, quick: QuickQueen, beads: Path, arguments: str
) -> None:
    body = "x" * 500_000
    quick("msg", "send", "ui-engineer", body, "--subject", "s" * 100_000, as_="reviewer")
    done = piped(queen, f"queen {arguments} | head -c 1; echo ${{PIPESTATUS[0]}}")
    assert done.stdout[1:].strip() == "0"
    assert done.stderr == ""


def test_a_closed_pipe_is_not_a_failure_of_help_either(queen: Queen) -> None:
    done = piped(queen, "queen --help | head -1; echo ${PIPESTATUS[0]}")
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize("option", ["", "--json"])
def test_an_answer_that_cannot_be_written_is_a_failure_that_says_so(
    queen: Queen, option: str
) -> None:
    done = piped(queen, f"queen hive where {option} >/dev/full; echo $?")
    assert done.stdout.strip() == "7"
    assert "standard output cannot be written: No space left" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("closed", ["1>&-", "2>&-", "0<&-", "0<&- 1>&- 2>&-"])
def test_a_closed_stream_changes_no_status(queen: Queen, quick: QuickQueen, closed: str) -> None:
    quick("reserve", "README.md", as_="reviewer")
    done = piped(queen, f"(queen reserve check README.md {closed}); echo $?")
    assert done.stdout.splitlines()[-1] == "1"
    assert "Traceback" not in done.stderr


LOST = {
    "stderr-closed": "2>&-",
    "stderr-full": "2>/dev/full",
    "stderr-unread": "2>&3",
    "stdout-closed": ">&-",
    "stdout-unread": ">&3",
}
"""Descriptor 3 is a pipe whose reader has left."""


@pytest.mark.some(6)
@pytest.mark.parametrize(
    "lost",
    [each for each in LOST.values() if "full" not in each or os.path.exists("/dev/full")],
    ids=lambda each: next(name for name, lost in LOST.items() if lost == each),
)
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("bead verify gt-1", 1),
        ("bead verify gt-1 --json", 1),
        ("reserve README.md", 5),
        ("gate hook -w wf -p p1", 2),
        ("gate check -w wf -p p1", 7),
    ],
)
def test_a_verdict_does_not_depend_on_who_reads_it(
    queen: Queen, quick: QuickQueen, repo: Path, arguments: str, code: int, lost: str
) -> None:
    quick("reserve", "README.md", as_="reviewer")
    put_bead(repo, ralph_bead("gt-1", "true", "touch ran; exit 1"))
    done = piped(queen, f"exec 3> >(true); wait $!; (queen {arguments} {lost}); echo $?")
    assert done.stdout.splitlines()[-1] == str(code)
    assert (repo / "ran").exists() == arguments.startswith("bead verify")
    assert "Traceback" not in done.stderr


def on_terminal(queen: Queen, *arguments: str, env: dict[str, str]) -> str:
    """Returns what the command prints on a terminal."""
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=queen.cwd,
        env=queen.environment("ui-engineer", {"TERM": "xterm", **env}),
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
        timeout=60,
    )
    os.close(theirs)
    assert done.returncode == 0
    shown = os.read(ours, 65_536)
    os.close(ours)
    return shown.decode()


@pytest.mark.parametrize(
    ("env", "colored"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True)],
)
def test_only_a_terminal_that_wants_color_gets_it(
    queen: Queen, quick: QuickQueen, env: dict[str, str], colored: bool
) -> None:
    quick("reserve", "README.md", as_="ui-engineer")
    assert ("\x1b[" in on_terminal(queen, "reserve", "list", env=env)) is colored


def test_a_terminal_gets_no_escape_of_a_text(queen: Queen, quick: QuickQueen) -> None:
    quick("issue", "new", "\x1b]0;owned\x07", "--description", "a\x1b[31m\rb", as_="ui")
    shown = on_terminal(queen, "issue", "list", "--format", "csv", env={})
    assert "\x1b" not in shown
    assert "a\\x1b[31m\\x0db" in shown


def test_a_pipe_gets_no_color(queen: Queen, quick: QuickQueen) -> None:
    quick("reserve", "README.md", as_="ui-engineer")
    assert "\x1b" not in queen("reserve", "list", as_="ui-engineer").out


def test_json_is_json_on_a_terminal_too(queen: Queen, quick: QuickQueen) -> None:
    quick("reserve", "README.md", as_="ui-engineer")
    assert on_terminal(queen, "reserve", "list", "--json", env={}).startswith("[\r\n{")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_every_encoding_of_the_output_works(queen: Queen, quick: QuickQueen, encoding: str) -> None:
    quick("msg", "send", "ui-engineer", "日本 → 👩‍💻", as_="reviewer")
    env = {"PYTHONIOENCODING": encoding}
    for arguments in (("msg", "inbox"), ("msg", "inbox", "--json"), ("msg", "thread", "x")):
        assert queen(*arguments, as_="ui-engineer", env=env).code in (0, 4)
    assert queen("msg", "inbox", "--json", as_="ui-engineer", env=env).json[0]["body"] == (
        "日本 → 👩‍💻"
    )


# Bugs


def test_a_bug_exits_with_70_and_one_line(
    quick: QuickQueen, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(Hive, "messages", property(broken))
    human = quick("msg", "inbox", as_="ui-engineer")
    assert human.code == 70
    assert human.err.startswith("queen: a bug in queen: ZeroDivisionError: oops\n")
    assert "QUEEN_DEBUG=1" in human.err
    assert quick("msg", "inbox", "--json", as_="ui-engineer").error["code"] == "bug"


def test_a_bug_shows_its_traceback_on_request(
    quick: QuickQueen, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(Hive, "messages", property(broken))
    with pytest.raises(ZeroDivisionError):
        quick("msg", "inbox", as_="ui-engineer", env={"QUEEN_DEBUG": "1"})


def test_a_bug_in_the_real_process_leaves_no_traceback(queen: Queen) -> None:
    program = (
        "from queenbee import Hive\n"
        "Hive.messages = property(lambda hive: 1 / 0)\n"
        "from queenbee.cli.main import main\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "msg", "inbox"],
        cwd=queen.cwd,
        env=queen.environment("ui-engineer", None),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (70, "")
    assert "Traceback" not in done.stderr
