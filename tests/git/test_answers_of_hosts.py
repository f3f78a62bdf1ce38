"""An answer of a host may have any shape: it is read as far as it makes sense."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hives import git
from scripted_host import SLUG, ScriptedHost

from queenbee.core.reviews.pull_requests import FAILING, LANDED, state_of
from queenbee.errors import QueenError
from queenbee.git.hosts.client import Client, Reply
from queenbee.git.hosts.repository import Repository
from queenbee.git.proposing.gitea import Gitea
from queenbee.git.proposing.github import GitHub
from queenbee.git.proposing.gitlab import GitLab
from queenbee.git.proposing.host import Host

HOSTS: dict[str, Callable[[Client], Host]] = {"github": GitHub, "gitlab": GitLab, "gitea": Gitea}
SHAPES: list[Any] = [None, True, -1, 10**40, "", "-x", [], {}, [[]], [None, 1, "x", {}]]


def changed(answer: Any, by: random.Random) -> Any:
    """Returns an answer with something else at one place."""
    if not isinstance(answer, dict | list) or not answer or by.random() < 0.1:
        return by.choice(SHAPES)
    answer = copy.copy(answer)
    at = by.choice([*answer]) if isinstance(answer, dict) else by.randrange(len(answer))
    answer[at] = changed(answer[at], by)
    return answer


@pytest.mark.parametrize("kind", HOSTS)
def test_any_shape_is_read_and_lands_nothing(
    kind: str, host: ScriptedHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = git(host.repo, "commit-tree", "main^{tree}", "-p", "main", "-m", "x").strip()
    git(host.repo, "branch", "ui", commit)
    number, head = host.opened("ui", "main", title="t", body="", draft=False), host.tip("ui")
    host.check(number, "FAILURE")
    host.review(number, "CHANGES_REQUESTED", "no")
    host.comment(number, "why?", "a", 1)
    host.kind, by, known = kind, random.Random(7), dict[str, Any]()
    may_change = False

    def answer(self: Client, path: str, *, method: str | None = None, body: Any = None) -> Reply:
        said = known.get(path)
        if said is None and body is not None:
            said = host.answered(" ".join(body["query"].split()), body["variables"])
        elif said is None:
            with suppress(AssertionError, LookupError):  # A changed number leads elsewhere.
                said = host.rest("GET", f"/{path}", {})[1]
        known[path] = said
        return Reply(200, {}, changed(said, by) if may_change else said)

    monkeypatch.setattr(Client, "ask", answer)
    client = Client(Repository("github.com", SLUG, kind), again="queen land")
    (seen,) = HOSTS[kind](client).look([number]).by_number.values()
    assert state_of(seen, head, is_in_target=False) == FAILING
    may_change = True
    for _ in range(1_000):
        with suppress(QueenError):
            for each in HOSTS[kind](client).look([number]).by_number.values():
                assert state_of(each, head, is_in_target=False) != LANDED
