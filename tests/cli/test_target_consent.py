"""What a person types last about where work lands is what they agree to."""

from __future__ import annotations

from pathlib import Path

import pytest
from hives import QuickQueen, commit_file, git, write_lines

from queenbee.store.layout import discover
from queenbee.store.trust import Trust, of_target


def waits(repo: Path) -> bool:
    layout = discover(str(repo), {})
    return bool(Trust(layout).unseen(of_target(layout)))


@pytest.mark.usefixtures("asking")
@pytest.mark.parametrize("name", ["labels", "reviewers"])
def test_what_a_pull_request_gets_is_asked_for_unless_it_was_typed(
    quick: QuickQueen, repo: Path, name: str
) -> None:
    """A label may deploy."""
    git(repo, "remote", "add", "origin", str(repo))
    for each, now in (("target", "origin/main"), ("by", "pr"), (name, "docs")):
        assert quick("config", "set", f"land.{each}", now, cwd=repo).code == 0
    assert not waits(repo)
    settings = repo / ".beads" / "queen.toml"
    settings.write_text(settings.read_text().replace('"docs"', '"docs", "deploy"'))
    assert waits(repo)
    assert "docs deploy" in quick("config", "trust", "--yes", cwd=repo).err
    assert not waits(repo)


@pytest.mark.usefixtures("asking")
@pytest.mark.parametrize("typed", [("by", "pr"), ("merge", "person"), ("labels", "docs")])
def test_who_types_how_work_lands_has_not_seen_where_a_pull_has_it_land(
    quick: QuickQueen, repo: Path, typed: tuple[str, str]
) -> None:
    git(repo, "remote", "add", "eve", str(repo))
    (repo / ".beads" / "queen.toml").write_text('[land]\ntarget = "eve/main"\nby = "pr"\n')
    assert quick("config", "set", f"land.{typed[0]}", typed[1], cwd=repo).code == 0
    assert waits(repo)


@pytest.mark.usefixtures("asking")
@pytest.mark.parametrize(
    "typed",
    [
        [("labels", "docs")],
        [("reviewers", "ann")],
        [("by", "pr")],
        [("target", "origin/main")],
        [("target", "main"), ("labels", "docs"), ("target", "origin/main")],
    ],
)
@pytest.mark.parametrize("agreed", ["", "[land]\n", '[land]\ntarget = "origin/main"\nby = "pr"\n'])
def test_who_types_one_setting_of_the_landing_has_not_seen_the_others(
    quick: QuickQueen, repo: Path, typed: list[tuple[str, str]], agreed: str
) -> None:
    git(repo, "remote", "add", "origin", str(repo))
    git(repo, "fetch", "-q", "origin")
    git(repo, "remote", "set-head", "origin", "main")
    settings = repo / ".beads" / "queen.toml"
    settings.write_text(agreed)
    if agreed:
        assert quick("config", "trust", "--yes", cwd=repo).code == 0
    settings.write_text('[land]\ntarget = "origin/main"\nby = "pr"\nmerge = "auto"\n')
    for name, value in typed:
        done = quick("config", "set", f"land.{name}", value, cwd=repo)
    assert waits(repo)
    assert "merged unasked" in done.err and "queen config trust" in done.err
    assert "merged unasked" in quick("config", "trust", "--yes", cwd=repo).err


@pytest.mark.usefixtures("asking")
def test_what_changes_nothing_yet_was_not_agreed_to_with_the_rest(
    quick: QuickQueen, repo: Path
) -> None:
    """`merge` counts once work is proposed."""
    git(repo, "remote", "add", "origin", str(repo))
    settings = repo / ".beads" / "queen.toml"
    settings.write_text('[land]\ntarget = "origin/main"\nmerge = "auto"\n')
    assert quick("config", "trust", "--yes", cwd=repo).code == 0
    assert not waits(repo)
    assert quick("config", "set", "land.by", "pr", cwd=repo).code == 0
    assert waits(repo)


@pytest.mark.usefixtures("asking")
def test_no_agent_is_told_to_merge_a_target_that_nobody_agreed_to(
    quick: QuickQueen, repo: Path, tmp_path: Path
) -> None:
    write_lines(repo / ".beads" / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "open"})
    assert quick("worktree", "add", "ui", "--path", str(tmp_path / "ui")).code == 0
    git(tmp_path, "clone", "-q", str(repo), "eve")
    commit_file(tmp_path / "eve", "a.txt")
    git(repo, "remote", "add", "eve", str(tmp_path / "eve"))
    git(repo, "fetch", "-q", "eve")
    commit_file(tmp_path / "eve", "b.txt")
    before = git(repo, "rev-parse", "eve/main")
    (repo / ".beads" / "queen.toml").write_text('[land]\ntarget = "eve/main"\n')
    for words in (("next",), ("reserve", "a.txt"), ("worktree", "collisions"), ("status",)):
        done = quick(*words, cwd=tmp_path / "ui")
        assert done.code == 0, done
        assert "eve/main" not in done.out + done.err
    assert git(repo, "rev-parse", "eve/main") == before
    assert quick("config", "set", "land.target", "eve/main", cwd=repo).code == 0
    assert "eve/main first" in quick("reserve", "a.txt", cwd=tmp_path / "ui").err


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
