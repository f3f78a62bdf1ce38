"""What a branch changes of the check is shown: the parts inside."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest
from hives import COMMAND, QuickQueen, Ran, commit_file, git
from hypothesis import given
from hypothesis import strategies as st

from queenbee.agents.setup import AGENTS
from queenbee.core.names import is_of_agent
from queenbee.git.landing.judged.check_files import check_files

SETTINGS = ".beads/queen.toml"

GUARDED = "[land]\ncheck = 'sh run-tests'\nguard_check = true\n"


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("./run-tests", "run-tests"),
        ("sh scripts/check.sh --all", "scripts/check.sh"),
        ("cd x && sh ./a.sh; exit 0", "a.sh"),
        ("sh -c './a.sh && true'", "a.sh"),
        ("nice make test", "Makefile"),
        ("make", "GNUmakefile"),
        ("make -f ci.mk", "ci.mk"),
        ("make -fci.mk", "ci.mk"),
        ("gmake -Csub test", "sub/Makefile"),
        ("python3 -mpytest", "pytest.toml"),
        ("./gradlew check", "build.gradle.kts"),
        ("tool --config=ci.ini", "ci.ini"),
        ("npm test", "package.json"),
        ("echo 'not closed; ./a.sh", "a.sh"),
        ("true # ./a.sh", "a.sh"),
        ("make -C sub test", "sub/Makefile"),
        ("cd ./sub && make", "sub/Makefile"),
        ("./t/run", "t"),
        ("for each in checks/*.sh; do sh $each; done", "checks/a.sh"),
        ("python3 -m chk", "chk.py"),
        ("python3 -m chk", "chk/__main__.py"),
        ("python3 -m chk.all", "chk/__init__.py"),
        ("python3 -mpytest", "pytest.py"),
        ("pytest", "pyproject.toml"),
        ("pytest tests", "tests/conftest.py"),
        ("cargo test", ".cargo/config.toml"),
        ("go test ./...", "go.work"),
        ("uv run pytest", "uv.toml"),
        ("uv run mypy .", "mypy.ini"),
        ("prove t", ".proverc"),
        ("prove t", "t/.proverc"),
        ("make lint && FLAG=1 timeout 60 prove t", ".proverc"),
        ("make lint\nprove t", ".proverc"),
        ("sh -c 'echo \"$(prove t)\"'", ".proverc"),
        ("python3 -mmypy x", "setup.cfg"),
        ("npx jest > log", "jest.config.mjs"),
        ("dotnet test", "Directory.Build.props"),
        ("bundle exec rspec", ".bundle/config"),
        ("sbt test", "build.sbt"),
        ("./check", "CMakeLists.txt"),
        ("echo 'not closed; true", "Makefile"),
        ("mvn test", ".mvn/extensions.xml"),
        ("cd ci && ./run.sh", "ci/run.sh"),
        ("(cd ci; sh run.sh)", "ci/run.sh"),
        ("cd a && cd b/c && sh run.sh", "a/b/c/run.sh"),
        ("cd ci && ../run.sh", "run.sh"),
        ("cd ci && sh *.sh", "ci/a.sh"),
        ("cd ci && python3 -m checks", "ci/checks.py"),
        ("python3 ci", "ci/__main__.py"),
        ("python3.12 -m unittest", "argparse.py"),
        ("python3 ci/x.py", "ci/json/__init__.py"),
        ("node ci", "ci/index.js"),
        ("run-parts ci", "ci/50-test"),
        ('"$PWD"/ci.sh', "ci.sh"),
        ("sh $QUEEN_WORKTREE/ci.sh", "ci.sh"),
        ("sh ${X:-$PWD}/ci.sh", "ci.sh"),
        ('sh "$(git rev-parse --show-toplevel)/ci.sh"', "ci.sh"),
        ('sh "$(pwd)/ci.sh"', "ci.sh"),
        ("sh `pwd`/ci.sh", "ci.sh"),
        ("D=ci; sh $D/run.sh", "ci/run.sh"),
        ("for f in a b; do sh ci/$f.sh; done", "ci/a.sh"),
        ("cargo test", "Cargo.toml"),
        ("cargo nextest run", ".config/nextest.toml"),
        ("cargo test", "build.rs"),
        ("go test ./...", "go.mod"),
        ("pnpm test", "package.yaml"),
        ("dotnet test", "a.runsettings"),
        ("mise run test", "mise-tasks/test"),
        ("", "sub/.gitattributes"),
        ("", ".husky/pre-commit"),
        ("", ".beads/hooks/on_close"),
        ("", ".mcp.json"),
        ("", "opencode.json"),
        ("", "kilo.json"),
        ("", "tui.jsonc"),
        ("", ".config/lefthook.json"),
        ("", ".lefthook.yml"),
        ("", ".claude/settings.local.json"),
        ("", "pkg/.Claude/settings.json"),
        ("", ".Codex/config.toml"),
        ("", ".github/workflows/ci.yml"),
        ("", ".gitlab-ci.yml"),
        ("", ".claude/agents/qa.md"),
    ],
)
def test_a_file_that_the_check_runs_and_a_workflow_are_of_the_check(
    command: str, path: str
) -> None:
    assert check_files([command], [path, "tests/test_x.py"]) == [path]


def test_what_clients_run_that_are_set_up_here_is_of_the_check() -> None:
    folders = [each for agent in AGENTS.values() for each in agent.in_tree if each[0] == "."]
    files = [f"{each}/x.json" for each in folders if not each.endswith(".md")]
    assert len(files) > 6
    assert check_files([], files) == sorted(files)


@pytest.mark.parametrize("command", ["pytest tests", "make test", "cd ci && ./x", "sh $f"])
def test_a_test_is_not(command: str) -> None:
    assert check_files([command], ["tests/test_x.py", "docs/Makefile", "run-tests"]) == []


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("npm test", "package-lock.json"),
        ("make test", "package.json"),
        ("env A=1 nice -n 5 make -C sub test 2>&1 && exit 0", "tox.ini"),
        ("python3 -m pytest -q", "Makefile"),
        ("prove t", "src/Makefile"),
        ("prove t", "main.c"),
        ("prove t", ".gitignore"),
        ("prove t", ".beads/queen_droids.jsonl"),
        ("prove t", "uv.lock"),
        ("git fetch && test -f x", "tox.ini"),
        ("make test", "config.json"),
    ],
)
def test_nor_are_settings_that_no_program_of_it_reads(command: str, path: str) -> None:
    assert check_files([command], [path]) == []


def test_settings_that_a_link_leads_to_are(tmp_path: Path) -> None:
    (tmp_path / ".proverc").symlink_to("conf/prove")
    assert check_files(["prove t"], ["conf/prove", "conf/x"], str(tmp_path)) == ["conf/prove"]


def test_what_a_link_leads_to_is_of_the_check_too(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "t").symlink_to("there")
    (tmp_path / "run").symlink_to("t/run")
    (tmp_path / "loop").symlink_to("loop")
    files = ["t", "t/run", "there/run", "run"]
    assert check_files(["./run ./loop/x"], files, str(tmp_path)) == sorted(files)
    files = ["there/go"]
    assert check_files(["cd t && ./go"], files, str(tmp_path)) == files


@pytest.mark.parametrize("folder", [".claude", ".husky", ".github/workflows", ".config", "hk"])
def test_a_link_in_place_of_a_folder_is_of_the_check_and_what_is_behind_it(
    tmp_path: Path, folder: str
) -> None:
    (tmp_path / folder).parent.mkdir(exist_ok=True)
    (tmp_path / folder).symlink_to(os.path.relpath(tmp_path / "there", (tmp_path / folder).parent))
    files = [folder, "there/lefthook.yml"]
    others = ["there.txt", f"{folder}.txt"]
    assert check_files([], [*files, *others], str(tmp_path), ["hk"]) == files


def test_what_a_file_of_a_client_leads_to_is_of_the_check(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").symlink_to("there/mcp")
    assert check_files([], ["there/mcp", "there/x"], str(tmp_path)) == ["there/mcp"]


def test_a_pattern_names_no_file_in_another_folder() -> None:
    assert check_files(["sh checks/*.sh"], ["x/checks/a.sh", "checks/x/a.sh", "a.sh"]) == []


@given(st.text(), st.lists(st.text()))
def test_no_command_breaks_it_and_only_what_changed_is_named(
    command: str, changed: list[str]
) -> None:
    assert {*check_files([command], changed)} <= {*changed}


@pytest.fixture
def tree(repo: Path, tmp_path: Path) -> Path:
    """A linked worktree of a repository whose check is a file of it."""
    commit_file(repo, "run-tests", "exit 0\n")
    commit_file(repo, SETTINGS, "[land]\ncheck = 'sh run-tests'\n")
    git(repo, "worktree", "add", "-q", str(tmp_path / "ui"), "-b", "ui")
    return tmp_path / "ui"


@pytest.fixture
def guarded(repo: Path, tree: Path) -> Path:
    """The same where a change of the check waits for a person, and the branch has one."""
    commit_file(repo, SETTINGS, GUARDED)
    commit_file(tree, "run-tests", "exit 0 # weaker\n")
    return tree


def landing(quick: QuickQueen, tree: Path, *more: str) -> Ran:
    return quick("land", *more, as_="ui", cwd=tree)


def key(quick: QuickQueen, tree: Path) -> str:
    """Returns what a landing says that a person is to type, to accept the change as it is now."""
    return str(landing(quick, tree, "--json").error["hint"]).rpartition(" ")[2]


def at_a_terminal(tree: Path, key: str, **marks: str) -> int:
    """Returns how `queen land --accept-check` ends for whoever sits there."""
    env = {name: each for name, each in os.environ.items() if not is_of_agent({name: each})}
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [*COMMAND, "land", "--accept-check", key, "--as", "ui"],
        cwd=tree, env={**env, **marks}, stdin=theirs, stdout=theirs, stderr=theirs, timeout=60,
    )  # fmt: skip
    os.close(theirs)
    os.close(ours)
    return done.returncode


def told(quick: QuickQueen) -> list[list[str]]:
    """Returns the files of the check that the person was told of."""
    mail = quick("msg", "inbox", "--json", as_="human").json
    return [each["check_files"] for each in mail if "check_files" in each]


class TestShown:
    @pytest.mark.some(1)
    @pytest.mark.parametrize("path", ["run-tests", ".github/workflows/ci.yml"])
    def test_it_is_named_and_the_person_is_told_once(
        self, quick: QuickQueen, repo: Path, tree: Path, path: str
    ) -> None:
        commit_file(tree, path, "exit 0 # other\n")
        done = landing(quick, tree, "--json")
        assert done.json["landing"]["check_files"] == [path]
        assert f"changes the check: {path}" in done.err
        assert told(quick) == [[path]]
        shown = f"A change of the check has landed: {path}"
        asked = f"for a person: ui wrote to you: “{shown}”: queen msg read --as human"
        assert asked in quick("status").out
        assert shown in quick("report", "--format", "md").out
        commit_file(tree, "more.txt", "x\n")
        done = landing(quick, tree, "--json")
        assert (done.json["landing"]["check_files"], len(told(quick))) == ([], 1)

    def test_hooks_in_the_folder_that_git_knows_are_of_the_check(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        git(repo, "config", "core.hooksPath", "tools/hooks/")
        commit_file(tree, "tools/hooks/post-merge", "#!/bin/sh\n")
        done = landing(quick, tree, "--json")
        assert done.json["landing"]["check_files"] == ["tools/hooks/post-merge"]

    @pytest.mark.parametrize("folder", [".beads/active", ".beads/completed", ".ralph/beads"])
    def test_the_checks_of_an_issue_are_of_the_check(
        self, quick: QuickQueen, tree: Path, folder: str
    ) -> None:
        commit_file(tree, f"{folder}/x.json", "{}\n")
        done = landing(quick, tree, "--json")
        assert done.json["landing"]["check_files"] == [f"{folder}/x.json"]

    @pytest.mark.parametrize("path", [".worktreeinclude", "set-up", "tools/machine"])
    def test_what_sets_up_where_it_is_checked_is_of_the_check(
        self, quick: QuickQueen, repo: Path, tree: Path, path: str
    ) -> None:
        setup = "[worktree]\nsetup = 'sh set-up'\n"
        commit_file(tree, SETTINGS, f"[land]\ncheck = 'sh run-tests'\n{setup}")
        git(repo, "config", "queenbee.setup", "test -e tools/machine || true")
        commit_file(tree, path, "x\n")
        found = landing(quick, tree, "--json").json["landing"]["check_files"]
        assert found == [path, SETTINGS]

    def test_of_the_settings_only_those_of_landing_are(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        commit_file(tree, SETTINGS, "ttl = '1h'\n[land]\ncheck = 'sh run-tests'\n")
        assert landing(quick, tree, "--json").json["landing"]["check_files"] == []
        commit_file(tree, SETTINGS, "[land]\ncheck = 'sh run-tests || true'\n")
        assert landing(quick, tree, "--json").json["landing"]["check_files"] == [SETTINGS]


class TestGuarded:
    def test_it_waits_for_a_person_and_no_agent_passes(
        self, quick: QuickQueen, repo: Path, guarded: Path
    ) -> None:
        before = git(repo, "rev-parse", "main")
        for _ in range(2):
            error = landing(quick, guarded, "--json").error
            assert (error["code"], error["files"]) == ("check_guarded", ["run-tests"])
            assert f"cd {guarded} && queen land --accept-check " in error["hint"]
        assert told(quick) == [["run-tests"]]
        shown = key(quick, guarded)
        assert shown in quick("msg", "read", as_="human").out
        assert landing(quick, guarded, "--accept-check", shown).code == 5
        assert at_a_terminal(guarded, shown, CLAUDECODE="1") == 5
        assert at_a_terminal(guarded, shown, QUEEN_TEAM_LOG="x") == 5
        assert git(repo, "rev-parse", "main") == before
        assert at_a_terminal(guarded, shown) == 0
        assert "weaker" in (repo / "run-tests").read_text()

    def test_only_what_was_shown_is_accepted_and_another_change_asks_again(
        self, quick: QuickQueen, repo: Path, guarded: Path
    ) -> None:
        shown = key(quick, guarded)
        commit_file(guarded, "run-tests", "exit 0 # none\n")
        key(quick, guarded)  # That of an agent, after a person has looked.
        for wrong in (shown, ""):
            assert at_a_terminal(guarded, wrong) == 5
        commit_file(guarded, "run-tests", "exit 1\n")
        assert at_a_terminal(guarded, key(quick, guarded)) == 1  # Accepted, and the check fails.
        commit_file(guarded, "run-tests", "exit 0\n# mended\n")
        assert at_a_terminal(guarded, key(quick, guarded)) == 0

    def test_what_was_accepted_lands_without_a_further_word(
        self, quick: QuickQueen, repo: Path, guarded: Path, tmp_path: Path
    ) -> None:
        shown = key(quick, guarded)
        git(repo, "config", "queenbee.check", "exit 1")
        assert at_a_terminal(guarded, shown) == 3  # Main fails it, too.
        git(repo, "config", "queenbee.check", "sh run-tests")
        assert landing(quick, guarded).code == 0

    def test_what_a_person_took_back_is_asked_for_again(
        self, quick: QuickQueen, repo: Path, guarded: Path
    ) -> None:
        weaker = (guarded / "run-tests").read_text()
        strict = git(repo, "show", "main:run-tests")
        shown = key(quick, guarded)
        commit_file(repo, "other.txt", "x\n")  # What is beside the check changes nothing.
        assert at_a_terminal(guarded, shown) == 0
        commit_file(repo, "run-tests", strict)
        git(guarded, "merge", "-q", "main")
        commit_file(guarded, "run-tests", weaker)
        assert landing(quick, guarded).code == 5  # Once, as it takes back what has landed.
        assert landing(quick, guarded, "--json").error["code"] == "check_guarded"
        assert key(quick, guarded) != shown
        assert at_a_terminal(guarded, shown) == 5

    def test_no_note_of_the_worktree_accepts_it(self, quick: QuickQueen, guarded: Path) -> None:
        assert landing(quick, guarded).code == 5
        note = Path(git(guarded, "rev-parse", "--absolute-git-dir").strip()) / "queenbee-land-check"
        files = json.loads(note.read_text())
        for planted in (files, {"files": files, "accepted": True}):
            note.write_text(json.dumps(planted))
            assert landing(quick, guarded).code == 5

    @pytest.mark.parametrize("where", ["main", "branch"])
    def test_neither_a_file_nor_the_branch_takes_the_guard_away(
        self, quick: QuickQueen, repo: Path, guarded: Path, where: str
    ) -> None:
        text = GUARDED.replace("true", "false")
        if where == "main":
            (repo / SETTINGS).write_text(text)
        else:
            git(guarded, "merge", "-q", "--no-edit", "main")
            commit_file(guarded, SETTINGS, text)
        assert landing(quick, guarded).code == 5

    def test_a_landing_that_leaves_the_check_alone_passes(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        commit_file(repo, SETTINGS, GUARDED)
        commit_file(tree, "new.txt", "x\n")
        assert landing(quick, tree).code == 0
