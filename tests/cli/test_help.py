"""Help, examples, suggestions, completion: what teaches the command line to whoever types it."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hives import COMMAND, Queen, QuickQueen


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
        ("stat", "status"),
        ("leases", "reserve list"),
    ],
)
def test_a_mistyped_command_suggests_the_nearest(
    quick: QuickQueen, typed: str, meant: str | None
) -> None:
    refused = quick(typed, "--json")
    assert (refused.code, refused.error["code"]) == (2, "usage")
    suggestion = f" Did you mean '{meant}'?" if meant else ""
    assert refused.error["message"] == f"No such command {typed!r}.{suggestion}"
    needs = meant in ("claim", "reserve", None)
    assert refused.error["hint"] in (
        f"queen {meant + ' ' if meant else ''}--help",
        *([] if needs else [f"queen {meant}"]),
    )


@pytest.mark.parametrize(
    ("typed", "corrected"),
    [
        ("stat", "queen status"),
        ("add worktree bob", "queen worktree add bob"),
        ("list worktrees", "queen worktree list"),
        ("message ui hi", "queen msg send ui hi"),
        ("config ttl", "queen config get ttl"),
        ("config ttl 3h", "queen config set ttl 3h"),
        ("unclaim s-1", "queen release s-1"),
        ("restore s-1", "queen issue reopen s-1"),
        ("leases", "queen reserve list"),
        ("revert", "queen undo"),
        ("take s-1", "queen claim s-1"),
        ("add 'a title'", "queen issue new 'a title'"),
        ("issue 'fix it'", "queen issue new 'fix it'"),
        ("issue take s-1", "queen claim s-1"),
        ("update s-1 --status open", "queen issue edit s-1 --status open"),
        ("dep add s-1 s-2", "queen issue dep s-1 s-2"),
        ("dep remove s-1 s-2", "queen issue dep s-1 s-2 --remove"),
        ("issue dep add s-1 s-2", "queen issue dep s-1 s-2"),
        ("issues list", "queen issues"),
        ("board", "queen watch"),
        ("stop", "Ctrl-C in the terminal of queen start"),
        ("ask 'May I?'", "queen msg send human 'May I?'"),
        ("issue new Fix the bug", "queen issue new 'Fix the bug'"),
        ("issue new --id s-1 Fix it", "queen issue new --id s-1 'Fix it'"),
        ("answer s-1 half up", "queen answer s-1 'half up'"),
        ("issue new --title 'a b' --id s-1", "queen issue new 'a b' --id s-1"),
        ("issue new --titel=X", "queen issue new X"),
        ("help nxt", "queen help next"),
        ("help deinit", "queen help setup"),
        ("msg bob 'hi there'", "queen msg send bob 'hi there'"),
        ("bead check s-1", "queen bead verify s-1"),
        ("next s-3", "queen claim s-3"),
        ("issues new 'a title'", "queen issue new 'a title'"),
        ("clam s-1", "queen claim s-1"),
        ("reserve src/api 2h", "queen --as ui reserve src/api --ttl 2h"),
        ("issue dep add a b", "queen --as ui issue dep a b"),
        ("log --count 5 --issue s-1", "queen log --limit 5 --issue s-1"),
        ("msg send bob hi --urgnet", "queen msg send --help"),
    ],
)
def test_what_was_typed_wrong_is_answered_by_the_corrected_line(
    quick: QuickQueen, beads: Path, typed: str, corrected: str
) -> None:
    refused = quick(*shlex.split(typed), "--json", as_="ui")
    assert refused.error["hint"].replace(" --as ui", "") == corrected.replace(" --as ui", "")


def test_a_priority_is_taken_as_lists_show_it(quick: QuickQueen, beads: Path) -> None:
    assert quick("issue", "new", "Urgent", "--priority", "P0", "--id", "s-1", as_="ui").code == 0
    assert quick("--json", "show", "s-1").json["issue"]["priority"] == 0
    quick("claim", "s-1", as_="ui")
    assert "did you mean s-1" in quick("complete", "S1", as_="ui").err


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
    assert completed(queen, "queen re") == {"reserve", "release", "report", "review"}
    assert completed(queen, "queen msg re") == {"read", "reply"}
    assert "--shared" in completed(queen, "queen reserve --sh")
    assert completed(queen, "queen msg send --importance u") == {"urgent"}


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
def test_the_manual_page_has_every_command_and_nothing_that_roff_warns_of(
    quick: QuickQueen,
) -> None:
    page = quick("help", "--man").out
    asked = ["groff", "-man", "-ww", "-z", "-k"]
    checked = subprocess.run(asked, input=page, capture_output=True, text=True, check=True)
    assert checked.stderr == ""
    sections = {line.split(" [")[0] for line in page.splitlines() if line.startswith(".SS ")}
    assert {".SS queen land", ".SS queen msg send", ".SS queen hive forget"} <= sections
    assert ".B \\-\\-dry\\-run" in page
