"""News: the parts inside."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_inputs import NAME, recorded, shaped
from hives import commit_file, git
from news_events import Ask, Hear, hive_of, issues, send, stop
from stamps import format_ms

from queenbee import Hive
from queenbee.core.names import part_of
from queenbee.errors import Busy
from queenbee.hook import news as hook_news
from queenbee.services.messages import LANDED, stage
from queenbee.services.telling import news
from queenbee.services.waiting.pauses import finish
from queenbee.services.work import Wanted, wait
from queenbee.store.droids import told as store_told


def test_where_nothing_changed_no_ledger_is_read(
    hear: Hear, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(tree, "Wait")
    hear()
    monkeypatch.setattr(news, "take", None)
    assert hear() == []


def test_an_issue_that_was_waited_for_in_vain_is_told_when_it_is_done(
    hear: Hear, tree: Path
) -> None:
    issues(tree, {"id": "qb-1", "title": "The model"})
    hive = hive_of(tree, "tester")
    for _ in range(2):
        with pytest.raises(Busy):
            finish(wait(hive, Wanted(issues=["qb-1"]), timeout_s=0))
        assert hear() == []
        hive_of(tree, "reviewer").assignments.claim("qb-1")
        hive_of(tree, "reviewer").assignments.complete("qb-1")
        assert hear() == ["- qb-1 “The model” is done, by reviewer"]
        assert hear() == []
        reopened = format_ms(hive.now_ms() + 1)
        issues(tree, {"id": "qb-1", "title": "The model", "updated_at": reopened})


def test_while_another_process_tells_the_droid_nobody_else_does(hear: Hear, tree: Path) -> None:
    send(tree, "About the parser")
    with store_told.Told(hive_of(tree, "tester").layout, "tester") as mine:
        assert mine
        assert hear() == []
    assert len(hear()) == 2


def test_what_was_told_is_not_told_again_with_the_next(
    hear: Hear, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook_news, "Told", store_told.Told)
    send(tree, "first")
    hear()
    send(tree, "second")
    assert not any("first" in line for line in hear())


def test_what_is_written_while_a_droid_is_told_is_told_next(
    hear: Hear, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = news._items

    def and_then(hive: Hive, *rest: Any) -> Any:
        yield from list(items(hive, *rest))
        send(tree, "in between")

    monkeypatch.setattr(news, "_items", and_then)
    send(tree, "first")
    hear()
    monkeypatch.setattr(news, "_items", items)
    assert any("in between" in line for line in hear())


def test_what_cannot_be_remembered_is_told_with_a_prompt_and_not_after_each_tool(
    hear: Hear, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(tree, "About the parser")
    monkeypatch.setattr(store_told.Told, "add", lambda *_: False)
    monkeypatch.setattr(store_told.Told, "saw", lambda *_: None)
    assert hear("claude/post-bash") == []
    assert len(hear("claude/prompt")) == len(hear("claude/prompt")) == 2


def test_the_memory_stays_small(tree: Path) -> None:
    told = store_told.Told(hive_of(tree, "tester").layout, "tester")
    with told:
        for number in range(40):
            assert told.add(f"qm-{number}-{each:022}" for each in range(100))
    assert (tree / ".git" / "queenbee" / "told" / "tester").stat().st_size < 100_000
    assert told.known()[-1] == f"qm-39-{99:022}"


def test_without_a_session_or_a_memory_nobody_is_kept(
    ask: Ask, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hive_of(tree, "tester").assignments.claim("qb-1")
    assert stop(ask, tree, session_id="") == ""
    with monkeypatch.context() as patch:
        patch.setattr(store_told.Told, "add", lambda *_: False)
        assert stop(ask, tree) == ""
    assert stop(ask, tree) != ""


def test_only_where_its_shell_lacks_its_name_a_session_is_told_to_pass_it(
    ask: Ask, tree: Path
) -> None:
    name = f"cursor-{part_of(json.loads(shaped('cursor/stop', tree))['conversation_id'])}"
    for droid, issue in ((NAME, "qb-1"), (name, "qb-2")):
        hive_of(tree, droid).assignments.claim(issue)
    answer = ask(recorded("claude/stop", tree))
    assert answer is not None
    assert "When it is done: queen complete qb-1. " in answer["reason"]
    answer = ask(shaped("cursor/stop", tree))
    assert answer is not None
    assert f"queen complete qb-2 --as {name}" in answer["followup_message"]


def test_what_was_landed_is_no_news_once_it_was_merged_by_hand(
    hear: Callable[..., list[str]], tree: Path
) -> None:
    for count in (1, 2):
        commit_file(tree, f"{count}.txt", "x\n")
        commit = git(tree, "rev-parse", "HEAD").strip()
        git(tree, "reset", "-q", "--keep", "HEAD^")
        hive = hive_of(tree, "reviewer")
        with hive.transaction() as tx:
            fields = {"subject": "main has changed", "body": "b", "importance": "normal"}
            stage(tx, "reviewer", ["tester"], {**fields, LANDED: commit})
        if count == 1:
            git(tree, "merge", "-q", "--ff-only", commit)
            assert hear() == []
    assert "main has changed" in hear()[0]
