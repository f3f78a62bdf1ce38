"""What came from elsewhere runs only after a person at this machine has seen it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from bead_files import put_bead, ralph_bead
from hives import Queen, at_a_terminal, commit_file, git
from mcp_clients import called, error_of

pytestmark = pytest.mark.slow

ASKS = "nobody on this machine has seen"


@pytest.fixture
def queen(repo: Path, asking: Path) -> Queen:
    """The command in a repository whose check came with it."""
    (repo / ".beads" / "queen.toml").write_text('[land]\ncheck = "touch ../ran"\n')
    git(repo, "add", "--all")
    git(repo, "commit", "-qm", "settings")
    return Queen(repo)


@pytest.fixture
def tree(queen: Queen) -> Path:
    """The worktree of a droid that has something to land."""
    assert queen("worktree", "add", "ui").code == 0
    tree = queen.cwd.parent / "repo-ui"
    commit_file(tree, "a.txt", "a")
    return tree


def ran(queen: Queen) -> bool:
    return any((queen.cwd.parent / each / "ran").exists() for each in (".", "repo", "repo-ui"))


class TestACheckThatCameWithAClone:
    def test_is_refused_to_an_agent_which_is_told_to_go_on(self, queen: Queen, tree: Path) -> None:
        done = queen("land", "--json", cwd=tree)
        assert (done.code, done.error["code"]) == (5, "untrusted")
        assert done.error["commands"] == [
            {"kind": "check", "from": "land.check", "text": "touch ../ran", "more": []}
        ]
        assert "queen config trust" in done.error["hint"]
        assert "queen next" in done.error["hint"]
        assert not ran(queen)

    def test_commits_nothing_before_it_is_seen(self, queen: Queen, tree: Path) -> None:
        (tree / "b.txt").write_text("b")
        assert queen("land", "-m", "b", cwd=tree).code == 5
        assert git(tree, "status", "--porcelain") == "?? b.txt\n"

    def test_is_shown_to_a_person_and_runs_after_a_yes(self, queen: Queen, tree: Path) -> None:
        commit = git(queen.cwd, "rev-parse", "HEAD")[:10]
        status, shown = at_a_terminal(Queen(tree), "y\n", "land")
        assert (status, ran(queen)) == (0, True), shown
        assert ASKS in shown
        author = git(queen.cwd, "log", "-1", "--format=%an").strip()
        where = f"in .beads/queen.toml, {author} in {commit}"
        assert f"check of land.check, {where}:\n    touch ../ran\n" in shown
        commit_file(tree, "b.txt", "b")
        assert queen("land", cwd=tree).code == 0

    def test_does_not_run_after_a_no(self, queen: Queen, tree: Path) -> None:
        status, shown = at_a_terminal(Queen(tree), "n\n", "land")
        assert (status, ran(queen)) == (5, False)
        after = " ".join(shown.split("Let it run")[1].split())
        assert "you did not agree to check “touch ../ran” of land.check; nothing ran" in after
        assert "queen config trust" in after
        assert "queen next" not in after
        assert ASKS not in after

    def test_that_changed_is_shown_with_what_was_agreed_to_before(
        self, queen: Queen, tree: Path
    ) -> None:
        assert at_a_terminal(Queen(tree), "y\n", "land")[0] == 0
        (queen.cwd / ".beads" / "queen.toml").write_text('[land]\ncheck = "touch ../other"\n')
        _, shown = at_a_terminal(queen, "n\n", "config", "trust")
        said = "in .beads/queen.toml, not committed; you agreed before to “touch ../ran”"
        assert f"check of land.check, {said}:\n    touch ../other\n" in shown
        assert "elsewhere" not in queen("status").out

    @pytest.mark.parametrize("mark", ["CLAUDECODE", "QUEEN_TEAM_LOG", "CODEX_THREAD_ID"])
    def test_is_not_put_to_an_agent_in_a_terminal(
        self, queen: Queen, tree: Path, mark: str
    ) -> None:
        status, shown = at_a_terminal(Queen(tree), "y\n", "land", **{mark: "1"})
        assert (status, ran(queen)) == (5, False)
        assert "Let it run" not in shown

    def test_asks_again_when_a_pull_has_changed_it(self, queen: Queen, tree: Path) -> None:
        assert at_a_terminal(Queen(tree), "y\n", "land")[0] == 0
        commit_file(queen.cwd, ".beads/queen.toml", '[land]\ncheck = "touch ../ran; id"\n')
        commit_file(tree, "b.txt", "b")
        assert queen("land", cwd=tree).code == 5

    def test_asks_for_what_a_branch_makes_of_it(self, queen: Queen, tree: Path) -> None:
        queen("config", "trust", "--yes")
        commit_file(tree, ".beads/queen.toml", '[land]\ncheck = "touch ../ran"\n# more\n')
        assert queen("land", cwd=tree).code == 0
        commit_file(tree, ".beads/queen.toml", '[land]\ncheck = "touch ../other"\n')
        done = queen("land", "--json", cwd=tree)
        assert (done.code, done.error["code"]) == (5, "untrusted")
        assert git(tree, "status", "--porcelain", "--branch") == "## ui\n"
        assert "touch ../other" in queen("config", "trust", "--yes").err
        assert queen("land", cwd=tree).code == 0
        assert (queen.cwd.parent / "other").exists()

    def test_hides_nothing_of_what_it_shows(self, queen: Queen, tree: Path) -> None:
        hidden = "true \x1b[2K\u202e" + "x" * 3000 + "; id"
        commit_file(queen.cwd, ".beads/queen.toml", f"[land]\ncheck = {json.dumps(hidden)}\n")
        _, shown = at_a_terminal(Queen(tree), "n\n", "land")
        assert f"true \\x1b[2K\\u202e{'x' * 3000}; id" in shown
        assert "\x1b[2K" not in shown

    def test_of_several_lines_shows_each_and_runs_as_it_is(self, queen: Queen, tree: Path) -> None:
        check = "\n  cat > ../ran <<'E'\n\n  a\r\u200b\n(shell true)\nE\n"
        commit_file(queen.cwd, ".beads/queen.toml", f"[land]\ncheck = {json.dumps(check)}\n")
        status, shown = at_a_terminal(Queen(tree), "y\n", "land")
        lines = ["", "  cat > ../ran <<'E'", "", "  a\\r\\u200b", "(shell true)", "E", ""]
        numbered = "".join(f"    {n}: {each}\n" for n, each in enumerate(lines, 1))
        assert f":\n{numbered}Let it run" in shown, shown
        assert status == 0, shown
        ran = (tree.parent / "ran").read_bytes()
        assert ran.decode() == "\n  a\r\u200b\n(shell true)\n"

    def test_with_nul_or_surrogates_runs_not_at_all(self, queen: Queen, tree: Path) -> None:
        for check in ("true\0; touch ../ran", "true \ud800; touch ../ran"):
            (queen.cwd / ".beads" / "queen.toml").write_text(
                f"[land]\ncheck = {json.dumps(check)}\n"
            )
            status, shown = at_a_terminal(Queen(tree), "y\n", "land", "--unchecked")
            assert (status != 0, ran(queen)) == (True, False), shown


class TestWhatWasTypedHere:
    def test_needs_no_question(self, queen: Queen, tree: Path) -> None:
        assert queen("config", "set", "land.check", "touch ../ran && true").code == 0
        git(queen.cwd, "commit", "-qam", "check")
        assert queen("land", cwd=tree).code == 0

    def test_is_not_what_an_agent_set(self, queen: Queen, tree: Path) -> None:
        agent = {"CLAUDECODE": "1"}
        for check in ("touch ../ran", "touch ../ran; true"):
            queen("config", "set", "land.check", check, env=agent)
            git(queen.cwd, "commit", "-q", "--allow-empty", "-am", "check")
            assert queen("land", cwd=tree, env=agent).code == 5
        assert not ran(queen)

    def test_is_a_check_of_this_machine(self, queen: Queen, tree: Path) -> None:
        git(queen.cwd, "config", "queenbee.check", "true")
        assert queen("land", cwd=tree).code == 0
        assert not ran(queen)

    def test_is_a_rule_of_a_gate(self, queen: Queen) -> None:
        gate = ("--workflow", "wf", "--phase", "one")
        assert queen("gate", "new", *gate).code == 0
        assert queen("gate", "add-rule", *gate, "--test", "true").code == 0
        assert queen("gate", "run", *gate).code == 0

    def test_is_the_answer_to_init(self, tmp_path: Path, asking: Path) -> None:
        repo = tmp_path / "fresh"
        git(tmp_path, "init", "-q", str(repo))
        commit_file(repo, "a.txt", "a")
        assert at_a_terminal(Queen(repo), "true\n", "init")[0] == 0
        git(repo, "add", "--all")
        git(repo, "commit", "-qm", "hive")
        queen = Queen(repo)
        assert queen("worktree", "add", "ui").code == 0
        commit_file(tmp_path / "fresh-ui", "b.txt", "b")
        assert queen("land", cwd=tmp_path / "fresh-ui").code == 0

    def test_does_not_count_what_was_in_a_list_before(self, queen: Queen) -> None:
        commit_file(queen.cwd, ".beads/queen.toml", '[team]\nargs = ["--bad"]\n')
        assert queen("config", "set", "--add", "team.args", "--", "--good").code == 0
        assert queen("config", "trust").code == 5


class TestBeadsAndGates:
    def test_of_a_file_are_refused(self, queen: Queen) -> None:
        put_bead(queen.cwd, ralph_bead("gt-1", "touch ran"))
        for words in (["bead", "verify", "gt-1"], ["bead", "run", "gt-1", "--agent-cmd", "true"]):
            done = queen(*words, "--json", as_="ui")
            assert (done.code, done.error["code"]) == (5, "untrusted")
        assert not ran(queen)
        assert queen("issue", "assignments", "--json").json == []

    def test_of_a_file_are_held_back_from_agents(self, queen: Queen) -> None:
        put_bead(queen.cwd, ralph_bead("gt-1", "touch ran"))
        (row,) = queen("issues", "--json").json
        assert (row["state"], row["because"]) == (
            "on_hold", "its checks wait for a person: queen config trust",
        )  # fmt: skip
        assert queen("next", as_="ui").code != 0
        assert queen("config", "trust", "--yes").code == 0
        assert queen("next", as_="ui").code == 0

    def test_of_a_file_are_no_reason_to_take_the_issue_anyway(self, queen: Queen) -> None:
        put_bead(queen.cwd, ralph_bead("gt-1", "touch ran"))
        done = queen("claim", "gt-1", "--json", as_="ui")
        assert (done.code, done.error["code"]) == (5, "untrusted")
        assert "queen config trust" in done.error["hint"]
        assert "--force" not in done.error["hint"]

    def test_of_a_gate_are_named_where_issues_wait_for_it(self, queen: Queen) -> None:
        gate = ("--workflow", "wf", "--phase", "one")
        queen("gate", "new", *gate)
        queen("gate", "add-rule", *gate, "--test", "touch ran")
        metadata = {"metadata": {"phase_gate": "wf/one"}}
        (queen.cwd / ".beads" / "issues.jsonl").write_text(
            json.dumps({"id": "x-1", "title": "After it", "status": "open", **metadata}) + "\n"
        )
        closed = "on hold: x-1: gate wf/one has not passed: it is pending"
        run = f"{closed}: queen gate run --workflow wf --phase one"
        assert run in " ".join(queen("issues").out.split())
        assert queen("config", "trust", "--forget").code == 0
        wait = f"{closed}; its rules wait for a person: queen config trust"
        assert wait in " ".join(queen("issues").out.split())

    def test_of_a_gate_that_somebody_wrote_are_refused_and_the_gate_stays(
        self, queen: Queen
    ) -> None:
        gate = ("--workflow", "wf", "--phase", "one")
        queen("gate", "new", *gate)
        queen("gate", "add-rule", *gate, "--test", "true")
        (file,) = (queen.cwd / ".claude" / "state" / "validation").glob("phase_*.json")
        file.write_text(file.read_text().replace('"true"', '"touch ran"'))
        before = file.read_text()
        assert queen("gate", "run", *gate).code == 5
        assert (file.read_text(), ran(queen)) == (before, False)

    def test_of_a_gate_that_look_out_of_the_repository_are_asked_for(self, queen: Queen) -> None:
        """A line that matches would be committed with the gate, for all to read."""
        gate = ("--workflow", "wf", "--phase", "one")
        (queen.cwd.parent / "private").write_text("the line that nobody else reads")
        (queen.cwd / "notes").symlink_to("../private")
        queen("gate", "new", *gate)
        queen("gate", "add-rule", *gate, "--contains", "notes", "--pattern", "nobody")
        assert queen("config", "trust", "--forget").code == 0
        (file,) = (queen.cwd / ".claude" / "state" / "validation").glob("phase_*.json")
        done = queen("gate", "run", *gate, "--json")
        assert (done.code, done.error["code"]) == (5, "untrusted")
        assert "that nobody else reads" not in file.read_text()
        status, shown = at_a_terminal(queen, "y\n", "gate", "run", *gate)
        assert status == 0, shown
        assert f"(looks at {queen.cwd.parent}/private)" in shown

    @pytest.mark.skipif(sys.platform != "linux", reason="It is in Linux's /proc")
    def test_of_a_gate_that_look_at_the_process_itself_are_asked_for_once(
        self, queen: Queen
    ) -> None:
        gate = ("--workflow", "wf", "--phase", "one")
        (queen.cwd / "own").symlink_to("/proc/self/comm")
        queen("gate", "new", *gate)
        queen("gate", "add-rule", *gate, "--contains", "own", "--pattern", ".")
        assert queen("config", "trust", "--forget").code == 0
        status, shown = at_a_terminal(queen, "y\n", "gate", "run", *gate)
        assert status == 0 and "(looks at /proc/self/comm)" in shown, shown
        assert queen("gate", "run", *gate, "--force").code == 0

    def test_of_files_that_a_person_landed_are_asked_for(self, queen: Queen, tree: Path) -> None:
        """Whoever lands a branch need not have written or read what it brings."""
        gate = ("--workflow", "wf", "--phase", "one")
        queen("gate", "new", *gate)
        queen("gate", "add-rule", *gate, "--test", "true")
        (file,) = (queen.cwd / ".claude" / "state" / "validation").glob("phase_*.json")
        text, folder = file.read_text(), file.parent.relative_to(queen.cwd)
        file.unlink()
        (tree / folder).mkdir(parents=True)
        (tree / folder / file.name).write_text(text.replace('"true"', '"touch unseen"'))
        put_bead(tree, ralph_bead("gt-1", "true"))
        commit = ("land", "-m", "a gate and a bead")
        assert queen("config", "trust", "--yes").code == 0
        status, shown = at_a_terminal(Queen(tree), "", *commit)
        assert status == 0, shown
        assert queen("gate", "run", *gate).code == 5
        assert queen("bead", "verify", "gt-1").code == 5
        assert not (queen.cwd / "unseen").exists()
        assert at_a_terminal(queen, "y\n", "config", "trust")[0] == 0
        assert queen("gate", "run", *gate).code == 0
        assert queen("bead", "verify", "gt-1").code == 0

    def test_of_a_gate_are_shown_to_a_person_and_run(self, queen: Queen) -> None:
        gate = ("--workflow", "wf", "--phase", "one")
        queen("gate", "new", *gate)
        rule = {"test_command": "touch ran", "working_directory": "docs", "env": {"A": "1"}}
        said = {"rule_id": "r", "rule_type": "test_pass", "rule_name": "R", "rule_config": rule}
        assert queen("gate", "add-rule", *gate, json.dumps(said)).code == 0
        assert queen("config", "trust", "--forget").code == 0
        (queen.cwd / "docs").mkdir()
        status, shown = at_a_terminal(queen, "y\n", "gate", "run", *gate)
        assert status == 0, shown
        assert ":\n    touch ran\n    (in docs)\n    (with A=1)\n" in shown
        assert (queen.cwd / "docs" / "ran").exists()

    def test_are_refused_to_a_client_of_the_tools(self, queen: Queen) -> None:
        put_bead(queen.cwd, ralph_bead("gt-1", "touch ran"))
        assert queen("claim", "gt-1", "--anyway", as_="ui").code == 0
        assert queen("complete", "gt-1", as_="ui").code == 5
        given = {"issue": "gt-1"}
        (answer,) = called(queen.cwd, ("complete", given), env={"QUEEN_DROID": "ui"})
        assert error_of(answer)["code"] == "untrusted"
        assert not ran(queen)


class TestConfigTrust:
    def test_shows_all_that_waits_and_asks_once(self, queen: Queen) -> None:
        put_bead(queen.cwd, ralph_bead("gt-1", "touch ran"))
        status, shown = at_a_terminal(queen, "y\n", "config", "trust")
        assert status == 0
        assert shown.count("Let it run") == 1
        assert "touch ../ran" in shown
        assert "verifier of gt-1, in " in shown
        assert "gt-1.json, not committed:\n    touch ran\n" in shown
        assert queen("config", "trust").out == "nothing waits for you\n"

    def test_with_yes_trusts_what_it_shows(self, queen: Queen) -> None:
        done = queen("config", "trust", "--yes")
        assert (done.code, done.out) == (0, "trusted: 1 command\n")
        assert "touch ../ran" in done.err
        assert " check of land.check: touch ../ran\n" in queen("config", "trust", "--list").out

    def test_lists_what_was_agreed_to_the_newest_last_and_what_waits(self, queen: Queen) -> None:
        before = queen("config", "trust", "--list").out.splitlines()
        assert before == [
            "nothing is agreed to on this machine",
            "1 command waits for you to look at: queen config trust",
        ]
        assert queen("config", "trust", "--yes").code == 0
        put_bead(queen.cwd, ralph_bead("gt-1", "touch ran"))
        assert queen("config", "trust", "--yes").code == 0
        check, bead = queen("config", "trust", "--list").out.splitlines()
        assert check[check.index("Z ") :] == "Z check of land.check: touch ../ran"
        assert bead[bead.index("Z ") :] == "Z verifier of gt-1: touch ran"

    def test_is_not_for_agents(self, queen: Queen) -> None:
        done = queen("config", "trust", "--yes", env={"CLAUDECODE": "1"})
        assert done.code == 2
        assert queen("config", "trust").code == 5

    def test_forgets(self, queen: Queen) -> None:
        queen("config", "trust", "--yes")
        assert queen("config", "trust", "--forget").code == 0
        assert queen("config", "trust").code == 5

    def test_what_waits_is_shown_to_people(self, queen: Queen) -> None:
        assert "1 command" in queen("status").out
        assert queen("status", "--json").json["unseen_commands"][0]["text"] == "touch ../ran"
        assert "queen config trust" in queen("status").out
