"""What `queen next` says to whoever has no more to do, and whose worktree has something left."""

from __future__ import annotations

from pathlib import Path

from hives import QuickQueen, commit_file, git, write_lines
from proposed import ask_again, follow, land
from scripted_host import ScriptedHost


def _done(quick: QuickQueen, tree: Path) -> str:
    """Returns what is said once everything is done."""
    return " ".join(quick("next", as_="ui", cwd=tree).out.split())


class TestEverythingIsDone:
    def test_but_commits_and_files_are_left_in_this_worktree(
        self, quick: QuickQueen, repo: Path, tmp_path: Path
    ) -> None:
        write_lines(
            repo / ".beads" / "issues.jsonl", {"id": "q-1", "title": "x", "status": "closed"}
        )
        quick("worktree", "add", "ui", cwd=repo)
        tree = tmp_path / "repo-ui"
        assert "1 of 1 issues. You can stop." in _done(quick, tree)
        commit_file(tree, "new.txt", "x\n")
        left = "1 of 1 issues, but 1 commit of this worktree is not on main yet; try: queen land"
        assert left in _done(quick, tree)
        (tree / "draft.txt").write_text("x\n")
        said = _done(quick, tree)
        assert "not committed: draft.txt; try: queen land -m 'WHAT YOU DID'" in said
        assert "You can stop" not in said
        value = quick("next", "--json", as_="ui", cwd=tree).json
        assert "not committed: draft.txt" in value["unlanded"]
        assert (value["state"], value["proposed"]) == ("done", [])
        assert "You can stop." in _done(quick, repo)

    def test_but_a_pull_request_is_open(
        self, quick: QuickQueen, repo: Path, host: ScriptedHost, tree: Path
    ) -> None:
        quick("issue", "close", "q-2")
        quick("issue", "close", "q-3")
        land(quick, tree)
        quick("complete", "q-1", "--reason", "is merged soon", as_="human")
        said = _done(quick, tree)
        assert "You can stop. Proposed, and not seen to be merged yet: ui-q-1; try: queen" in said
        assert quick("next", "--json", as_="ui", cwd=tree).json["proposed"] == ["ui-q-1"]
        commit_file(tree, "new.txt", "x\n")
        assert "but 1 commit of this worktree is not on origin/main yet; try: queen" in _done(
            quick, tree
        )

    def test_and_merged_as_another_commit(
        self, quick: QuickQueen, repo: Path, host: ScriptedHost, tree: Path
    ) -> None:
        quick("issue", "close", "q-2")
        quick("issue", "close", "q-3")
        land(quick, tree)
        host.merge(1, "SQUASH")
        said = " ".join(follow(quick, tree).out.split())
        assert "3 of 3 issues. You can stop." in said
        assert "not on" not in said
        assert "Proposed" not in said
        ask_again(tree)
        assert git(tree, "status", "--porcelain") == ""
