"""`queen watch --web` as a command: for whom, and at which address."""

from __future__ import annotations

from pathlib import Path

import pytest
from hives import QuickQueen
from web_pages import served


def test_no_agent_serves_it_as_a_person_would(quick: QuickQueen) -> None:
    quick("init")
    done = quick("watch", "--web", "--host", "0.0.0.0", env={"CLAUDECODE": "1"})
    assert (done.code, "acts for a person" in done.err) == (2, True)


def test_an_address_that_is_every_one_is_refused(quick: QuickQueen) -> None:
    quick("init")
    for host in ("0.0.0.0", "::"):
        done = quick("watch", "--web", "--host", host)
        assert (done.code, "no address that a browser can open" in done.err) == (2, True)
    done = quick("watch", "--web", "--host", "192.0.2.1")
    assert (done.code, "cannot be used" in done.err) == (2, True)


@pytest.mark.slow
def test_it_acts_under_the_name_that_is_set_or_as_human(quick: QuickQueen, repo: Path) -> None:
    quick("init")
    for options, name in (((), "human"), (("--as", "dora"), "dora")):
        with served(repo, *options) as page:
            assert f"You act as <b>{name}</b>" in page.ask("/", **page.enter()).text
