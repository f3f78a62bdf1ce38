"""`queen prompt`: the parts inside."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hives import QuickQueen, snapshot
from hypothesis import given
from hypothesis import strategies as st
from prompts import HOSTILE, installed, line

from queenbee import Hive
from queenbee.core.prompt_line import MOST_UNREAD, TARGETS, Glance, inert, line_of
from queenbee.store.droids.told import Told


def test_several_issues_and_much_mail_stay_short() -> None:
    glance = Glance("a", issues=["x" * 99, "y", "z"], unread=MOST_UNREAD + 1, waits=0, at_work=0)
    assert line_of(glance) == f"a ▸ {'x' * 23}… +2 · 99+ unread"


def test_it_reads_no_mail_takes_no_news_and_is_no_sign_of_life(
    quick: QuickQueen, beads: Path, repo: Path
) -> None:
    assert quick("msg", "send", "amber", "hello", as_="birch").code == 0
    quick("reserve", "src/", "--ttl", "1s", as_="amber")
    told = Told(Hive.open(repo).layout, "amber").known()
    before = snapshot(beads, repo / ".git" / "queenbee")
    stamps = {path: os.stat(path).st_mtime_ns for path in (repo / ".git" / "queenbee").rglob("*")}
    for _ in range(2):
        assert "1 unread" in line(quick)
        assert "1 unread" in installed(repo, QUEEN_DROID="amber").stdout
    assert snapshot(beads, repo / ".git" / "queenbee") == before
    assert {path: os.stat(path).st_mtime_ns for path in stamps} == stamps
    assert Told(Hive.open(repo).layout, "amber").known() == told


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_that_a_target_acts_on_is_left(target: str, name: str) -> None:
    for ascii_only in (False, True):
        shown = inert(name, target, ascii_only=ascii_only)
        assert not set(shown) & set(TARGETS[target])
        assert shown.isprintable() and (shown.isascii() or not ascii_only)


@given(st.text(), st.sampled_from(list(TARGETS)), st.booleans())
def test_any_name_is_inert(name: str, target: str, ascii_only: bool) -> None:
    glance = Glance("amber", issues=[name], unread=1, waits=1, at_work=0)
    shown = line_of(glance, target=target, ascii_only=ascii_only)
    assert not set(shown) & set(TARGETS[target])
    assert "\n" not in shown and "\x1b" not in shown and len(shown) < 200


def in_bash(repo: Path, prompt: str, line: str) -> str:
    """Returns a prompt as bash shows it; `line` is in a variable, as `PROMPT_COMMAND` may do it."""
    return subprocess.run(
        ["bash", "--norc", "-c", f'LINE=$1; PS1={prompt}; printf %s "${{PS1@P}}"', "-", line],
        cwd=repo,
        env={**os.environ, "HOME": "/home/you"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.parametrize("name", HOSTILE)
def test_bash_runs_and_changes_nothing_of_a_name(repo: Path, name: str) -> None:
    glance = Glance("amber", issues=[name], unread=0, waits=0, at_work=0)
    shown = line_of(glance, target="bash")
    # The line is in the prompt itself, or the prompt is told to ask for it each time.
    for prompt in ("$LINE", "'$(printf %s \"$LINE\")'"):
        assert in_bash(repo, prompt, shown) == shown
    assert not (repo / "ran").exists()
