"""What a person types last about where work lands is what they agree to."""

from __future__ import annotations

from pathlib import Path

import pytest
from hives import QuickQueen, git

from queenbee.store.layout import discover
from queenbee.store.trust import Trust, of_target


@pytest.mark.usefixtures("asking")
@pytest.mark.parametrize(
    "typed",
    [
        [("target", "origin/main"), ("by", "pr")],
        [("by", "pr"), ("target", "origin/main")],
        [("target", "origin/main"), ("by", "pr"), ("merge", "auto"), ("merge", "person")],
    ],
)
@pytest.mark.parametrize(("name", "value"), [("by", "merge"), ("merge", "auto")])
def test_who_has_work_proposed_is_asked_before_a_pull_has_it_pushed_or_merged(
    quick: QuickQueen, repo: Path, typed: list[tuple[str, str]], name: str, value: str
) -> None:
    git(repo, "remote", "add", "origin", str(repo))
    for each, now in typed:
        assert quick("config", "set", f"land.{each}", now, cwd=repo).code == 0

    def unseen() -> bool:
        layout = discover(str(repo), {})
        return bool(Trust(layout).unseen(of_target(layout)))

    assert not unseen()
    pulled = {"target": "origin/main", "by": "pr", "merge": "person", name: value}
    lines = [f'{each} = "{now}"' for each, now in pulled.items()]
    (repo / ".beads" / "queen.toml").write_text("\n".join(["[land]", *lines, ""]))
    assert unseen()
