"""What a shell completes: tested by the real shells where they are installed."""

from __future__ import annotations

import os
import pty
import select
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import QuickQueen, snapshot, write_lines

from queenbee import Hive

pytestmark = pytest.mark.slow

SCRIPTS = Path(__file__).parents[2] / "scripts"
NOW = {"created_at": "2024-12-14T10:00:00.123456Z", "updated_at": "2024-12-14T10:00:00.123456Z"}
HOSTILE = (
    "qb-$(touch ran)",
    "qb-`touch ran`",
    "qb-; touch ran",
    "qb-a b",
    "qb-*",
    "qb-~",
    "-rf",
    "qb-x\nplain,qb-injected",
    "qb-'\"",
)
IN_BASH = r"""
eval "$(queen completion bash)"
compopt() { printf 'compopt %s\n' "$2"; }
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
"$(complete -p queen | sed 's/.*-F \([^ ]*\).*/\1/')" queen
[ ${#COMPREPLY[@]} = 0 ] || printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def on_path(tmp_path: Path) -> str:
    """A PATH on which `queen` is ours."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "queen").write_text(f'#!/bin/sh\nexec {sys.executable} {SCRIPTS}/queen "$@"\n')
    (folder / "queen").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


@pytest.fixture
def busy_team(quick: QuickQueen, beads: Path, repo: Path) -> Path:
    """A repository with issues, messages, leases and files of all kinds."""
    rows = [
        {"id": "qb-1", "title": "Totals with tax", "status": "open", "issue_type": "task"},
        {"id": "qb-2", "title": "x\nplain\nqb-injected\n_", "status": "open", "issue_type": "task"},
        {"id": "qb-3", "title": "Done", "status": "closed", "issue_type": "task"},
        *({"id": each, "title": each, "status": "open", "issue_type": each} for each in HOSTILE),
    ]
    write_lines(beads / "issues.jsonl", *rows)
    assert quick("claim", "qb-1", as_="amber").code == 0
    assert quick("msg", "send", "amber", "hello", as_="birch").code == 0
    assert quick("reserve", "src/", as_="amber").code == 0
    return repo


@pytest.fixture
def complete(busy_team: Path, on_path: str) -> Callable[..., list[str]]:
    """Returns what bash offers for the last of these words."""

    def ask(*words: str, env: dict[str, str] | None = None) -> list[str]:
        done = subprocess.run(
            ["bash", "--norc", "-c", IN_BASH, "-", "queen", *words],
            cwd=busy_team,
            env={**os.environ, "PATH": on_path, "QUEEN_DROID": "amber", **(env or {})},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.stderr == ""
        return done.stdout.splitlines()

    return ask


# bash


def test_bash_completes_commands_and_options(complete: Callable[..., list[str]]) -> None:
    assert complete("re") == ["report", "release", "reserve", "review"]
    assert complete("issue", "ass") == ["assignments", "assign"]
    assert complete("msg", "re") == ["read", "reply"]
    assert complete("reserve", "x", "--sh") == ["--shared"]
    assert complete("completion", "") == ["bash", "zsh", "fish"]
    assert "queen" not in complete("") and "claim" in complete("")


@pytest.mark.some(8)
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("show", "qb"), ["qb-1", "qb-2"]),
        (("show", "qb-3"), ["qb-3"]),
        (("claim", "qb"), ["qb-2"]),
        (("claim", "qb-1"), ["qb-1"]),
        (("complete", ""), ["qb-1"]),
        (("release", "qb"), ["qb-1"]),
        (("land", ""), ["qb-1"]),
        (("issue", "reopen", ""), ["qb-3"]),
        (("issue", "new", "x", "--id", "qb"), []),
        (("issue", "edit", "qb-1", "--type", "t"), ["task"]),
        (("reserve", "x", "--issue", "qb-"), ["qb-1", "qb-2"]),
        (("reserve", "x", "--ttl", "1"), ["15m", "1h", "1d"]),
        (("issue", "assignments", "--droid", "b"), ["birch"]),
        (("issue", "assignments", "--status", "re"), ["released", "reassigned"]),
        (("msg", "send", "bi"), ["birch"]),
        (("--as", "am"), ["amber"]),
        (("msg", "nudge", "h"), ["human"]),
        (("setup", "c"), ["claude", "codex", "cursor", "copilot"]),
        (("issues", "--status", ""), ["closed", "open"]),
        (("reserve", "check", "x"), ["compopt default"]),
        (("reserve", "sr"), ["compopt default"]),
        (("reserve", "release", ""), ["compopt default"]),
        (("plan", "check", ""), ["compopt default"]),
        (("hive", "where", "--beads-dir", ""), ["compopt dirnames"]),
        (("hive", "whoami", "--set", ""), []),
    ],
)
def test_bash_completes_what_the_hive_knows(
    complete: Callable[..., list[str]], words: tuple[str, ...], offered: list[str]
) -> None:
    # `compopt` is told before what bash adds by itself.
    assert [each for each in complete(*words) if each != ""] == offered


def test_ids_are_offered_as_lists_show_them_or_whole(
    complete: Callable[..., list[str]], quick: QuickQueen
) -> None:
    message = quick("msg", "inbox", "--json", as_="amber").json[0]["id"]
    assert complete("msg", "read", "qm-") == [message]
    [short] = complete("msg", "read", "")
    assert message.endswith(short) and len(short) == 4
    lease = quick("reserve", "list", "--json", as_="amber").json[0]["id"]
    assert complete("reserve", "release", "--id", "qr") == [lease]
    assert complete("msg", "read", "", env={"QUEEN_DROID": "birch"}) == []


def test_nothing_is_offered_that_a_shell_would_change(complete: Callable[..., list[str]]) -> None:
    for words in (("show", ""), ("show", "qb-"), ("issue", "edit", "qb-1", "--type", "")):
        offered = complete(*words)
        assert offered
        assert all(shlex.quote(each) == each and each[0] != "-" for each in offered)
        assert "qb-injected" not in offered


def test_completing_changes_nothing_and_tells_nobody(
    complete: Callable[..., list[str]], beads: Path, repo: Path
) -> None:
    before = snapshot(beads, repo / ".git" / "queenbee")
    presence = repo / ".git" / "queenbee" / "droids" / "amber"
    seen = presence.stat().st_mtime_ns
    for words in (("show", "qb"), ("msg", "read", ""), ("reserve", "check", "x")):
        assert complete(*words)
    assert snapshot(beads, repo / ".git" / "queenbee") == before
    assert presence.stat().st_mtime_ns == seen
    assert not (repo / "ran").exists()


@pytest.mark.parametrize("words", [("show", "qb"), ("msg", "send", ""), ("--as", "")])
def test_outside_a_hive_and_in_a_broken_one_nothing_is_offered(
    complete: Callable[..., list[str]], words: tuple[str, ...], beads: Path, tmp_path: Path
) -> None:
    (tmp_path / "nothing").mkdir()
    assert complete(*words, env={"BEADS_DIR": str(tmp_path / "nothing")}) == []
    (beads / "redirect").write_text("nowhere")
    assert complete(*words) == []


def typed(repo: Path, path: str, keys: str, until: str) -> str:
    """Returns what a person sees who types these keys into bash."""
    ours, theirs = pty.openpty()
    shell = subprocess.Popen(
        ["bash", "--norc", "--noprofile", "-i"],
        cwd=repo,
        env={**os.environ, "PATH": path, "PS1": "", "TERM": "dumb", "INPUTRC": "/dev/null"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown, deadline_s = "", time.monotonic() + 60
    try:
        os.write(ours, b'eval "$(queen completion bash)"; echo is-"ready"\n')
        sent = False
        while until not in shown and time.monotonic() < deadline_s:
            if select.select([ours], [], [], 1)[0]:
                shown += os.read(ours, 65_536).decode(errors="replace")
            if not sent and "is-ready" in shown:
                os.write(ours, keys.encode())
                shown, sent = "", True
    finally:
        shell.kill()
        shell.wait()
        os.close(ours)
    return shown


@pytest.mark.parametrize("command", ["reserve check", "reserve"])
def test_bash_completes_a_hostile_file_name_in_quotes(
    busy_team: Path, on_path: str, command: str
) -> None:
    (busy_team / "weird $(touch ran);`touch ran`").write_text("")
    # Tab completes; Ctrl-A and another command show the words that the line consists of.
    keys = f"queen {command} wei\t\x01printf '<%s>' \n"
    shown = typed(busy_team, on_path, keys, "ran`>")
    words = "".join(f"<{word}>" for word in command.split(" "))
    assert f"<queen>{words}<weird $(touch ran);`touch ran`>" in shown
    assert not (busy_team / "ran").exists()


# The other shells


def protocol(repo: Path, shell: str, *words: str) -> str:
    """Returns what the completion script of a shell reads."""
    last = {"COMP_WORDS": " ".join(("queen", *words)), "COMP_CWORD": str(len(words))}
    if shell == "fish":
        last["COMP_CWORD"] = words[-1]
    return subprocess.run(
        [sys.executable, str(SCRIPTS / "queen")],
        cwd=repo,
        env={**os.environ, "QUEEN_DROID": "amber", "_QUEEN_COMPLETE": f"{shell}_complete", **last},
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout


def test_zsh_and_fish_get_titles_that_cannot_be_taken_for_completions(busy_team: Path) -> None:
    lines = protocol(busy_team, "zsh", "show", "qb").splitlines()
    triples = [tuple(lines[at : at + 3]) for at in range(0, len(lines), 3)]
    assert triples == [
        ("plain", "qb-1", "Totals with tax"),
        ("plain", "qb-2", "x plain qb-injected _"),
    ]
    assert protocol(busy_team, "fish", "show", "qb").splitlines() == [
        "plain,qb-1\tTotals with tax",
        "plain,qb-2\tx plain qb-injected _",
    ]
    for shell in ("zsh", "fish"):
        assert "file" in protocol(busy_team, shell, "reserve", "check", "x")
        assert "Take the next issue" in protocol(busy_team, shell, "nex")


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes(busy_team: Path, on_path: str) -> None:
    script = 'queen completion fish | source; complete -C "queen show qb"'
    done = subprocess.run(
        ["fish", "--no-config", "-c", script],
        cwd=busy_team,
        env={**os.environ, "PATH": on_path, "QUEEN_DROID": "amber"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["qb-1", "qb-2"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_completes(busy_team: Path, on_path: str) -> None:
    script = """
    compdef() { : }
    eval "$(queen completion zsh)"
    _describe() { print -rl -- "${(@P)3}" }
    compadd() { : }
    words=(queen show qb) CURRENT=3
    _queen_completion
    """
    done = subprocess.run(
        ["zsh", "-fc", script],
        cwd=busy_team,
        env={**os.environ, "PATH": on_path, "QUEEN_DROID": "amber"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["qb-1", "qb-2"]


def test_a_hive_of_many_issues_offers_no_more_than_anyone_reads(
    complete: Callable[..., list[str]], beads: Path
) -> None:
    write_lines(beads / "issues.jsonl", *({"id": f"qb-{n}", "status": "open"} for n in range(999)))
    assert len(complete("show", "qb")) == 200
    assert complete("show", "qb-998") == ["qb-998"]
    assert len(Hive.open(beads.parent).issues.all()) >= 999


@pytest.mark.parametrize("text", ["# my own\n", "", 'eval "$(_QUEEN_COMPLETE=bash_source queen)"'])
def test_a_persons_own_file_is_not_written_over_also_behind_a_link(
    quick: QuickQueen, tmp_path: Path, text: str
) -> None:
    place = tmp_path / "home" / ".local/share/bash-completion/completions/queen"
    own = tmp_path / "dotfiles"
    place.parent.mkdir(parents=True)
    place.symlink_to(own)
    own.write_text(text)
    refused = quick("completion", "bash", "--install", env={"HOME": str(tmp_path / "home")})
    assert (refused.code, "is not a file of queen completion" in refused.err) == (5, True)
    assert (own.read_text(), place.is_symlink()) == (text, True)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_one_of_an_older_version_is_replaced(quick: QuickQueen, tmp_path: Path, shell: str) -> None:
    env = {"HOME": str(tmp_path / "home")}
    first = quick("--json", "completion", shell, "--install", env=env).json
    path = Path(first["path"])
    path.write_text(first["script"].replace("response", "older"))
    assert quick("completion", shell, "--install", env=env).code == 0
    assert path.read_text() == first["script"]


def test_it_is_installed_where_the_shells_look_for_it(quick: QuickQueen, tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path / "home")}
    paths = {
        shell: Path(quick("--json", "completion", shell, "--install", env=home).json["path"])
        for shell in ("bash", "zsh", "fish")
    }
    assert [path.relative_to(tmp_path / "home").as_posix() for path in paths.values()] == [
        ".local/share/bash-completion/completions/queen",
        ".local/share/zsh/site-functions/_queen",
        ".config/fish/completions/queen.fish",
    ]
    asked = f"source {shlex.quote(str(paths['bash']))} && complete -p queen"
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    assert "_queen_completion queen" in done.stdout
    assert paths["zsh"].read_text().startswith("#compdef queen")
