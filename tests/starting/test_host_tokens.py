"""Tokens of code hosts and the ssh-agent: which processes get them."""

from __future__ import annotations

from pathlib import Path

import pytest
from bead_files import put_bead, ralph_bead
from hives import Queen, QuickQueen, commit_file, git
from teams import WORKS, Team

from queenbee.store.git_files.host_tokens import (
    BEGINS,
    ENDS,
    NAMES,
    RUNNERS,
    for_a_landing,
    without_tokens,
)

SECRETS = {
    "GH_TOKEN": "ghp", "GITLAB_TOKEN": "glpat", "SSH_AUTH_SOCK": "/nowhere", "CI_JOB_TOKEN": "ci",
}  # fmt: skip
OTHERS = {"ANTHROPIC_API_KEY": "key", "JAVA_HOME": "/java"}
SHOWN = f"env | grep -E '^({'|'.join([*SECRETS, *OTHERS])})=' | sort"


@pytest.fixture
def tree(repo: Path, tmp_path: Path) -> Path:
    git(repo, "worktree", "add", "-q", str(tmp_path / "one"), "-b", "one")
    commit_file(tmp_path / "one", "new.txt", "one\n")
    return tmp_path / "one"


def names(path: Path) -> list[str]:
    """Returns the variables that were written to a file."""
    return [each.partition("=")[0] for each in path.read_text().splitlines()]


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**SECRETS, **OTHERS}.items():
        monkeypatch.setenv(name, value)


class TestTheCheckOfALanding:
    def test_gets_the_environment_without_them(
        self, quick: QuickQueen, tree: Path, tmp_path: Path, environment: None
    ) -> None:
        check = f"{SHOWN} > {tmp_path / 'out'}"
        assert quick("land", "--check", check, as_="ui", cwd=tree).code == 0
        assert names(tmp_path / "out") == ["ANTHROPIC_API_KEY", "JAVA_HOME"]

    def test_gets_those_that_the_git_config_of_this_machine_names(
        self, quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path, environment: None
    ) -> None:
        git(repo, "config", "queenbee.env", "GH_TOKEN, SSH_AUTH_SOCK")
        check = f"{SHOWN} > {tmp_path / 'out'}"
        assert quick("land", "--check", check, as_="ui", cwd=tree).code == 0
        got = names(tmp_path / "out")
        assert got == ["ANTHROPIC_API_KEY", "GH_TOKEN", "JAVA_HOME", "SSH_AUTH_SOCK"]

    def test_leaves_other_variables_to_the_hooks_of_git(
        self, quick: QuickQueen, tree: Path, repo: Path, tmp_path: Path, environment: None
    ) -> None:
        hook = repo / ".git" / "hooks" / "pre-commit"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\n{SHOWN} > {tmp_path / 'out'}\n")
        hook.chmod(0o755)
        (tree / "more.txt").write_text("more\n")
        assert quick("land", "-m", "more", "--check", "true", as_="ui", cwd=tree).code == 0
        assert names(tmp_path / "out") == sorted(OTHERS)

    def test_is_not_changed_by_what_runners_read_of_it(
        self, quick: QuickQueen, tree: Path, repo: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tree / "Makefile").write_text("test:\n\texit 1\n")
        commit_file(tree, "Makefile", (tree / "Makefile").read_text())
        monkeypatch.setenv("MAKEFLAGS", "n")
        assert quick("land", "--check", "make test", as_="ui", cwd=tree).code == 1
        git(repo, "config", "queenbee.env", "MAKEFLAGS")
        assert quick("land", "--check", "make test", as_="ui", cwd=tree).code == 0


ALIKE = (
    "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "npm_config_script_shell", "NPM_CONFIG_PREFIX",
    "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", "BASH_FUNC_test%%", "BASHOPTS", "SHELLOPTS",
    "pnpm_config_script_shell", "PNPM_CONFIG_SCRIPT_SHELL", "JUST_DRY_RUN", "JUST_JUSTFILE",
    "GTEST_FILTER", "SPEC_OPTS", "TOX_OVERRIDE", "TOXENV", "TESTOPTS", "BUN_OPTIONS",
    "NEXTEST_PROFILE", "MAVEN_OPTS", "MAVEN_ARGS", "GRADLE_OPTS", "DOTNET_STARTUP_HOOKS",
    "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_PROFILE_TEST_DEBUG_ASSERTIONS",
    "YARN_SCRIPT_SHELL", "GNUMAKEFLAGS", "GOFLAGS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS",
    "MAKEFLAGS", "MFLAGS", "NODE_OPTIONS", "PERL5OPT", "PYTEST_ADDOPTS", "RUBYOPT",
    "RUSTC_WORKSPACE_WRAPPER", "RUSTC_WRAPPER", "_JAVA_OPTIONS", "HARNESS_PERL_SWITCHES",
    "ORG_GRADLE_PROJECT_x", "VSTestTestCaseFilter", "NOXSESSION",
)  # fmt: skip
NEEDED = (
    "JAVA_HOME",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "GOPATH",
    "NVM_DIR",
    "PYENV_ROOT",
    "NODE_PATH",
    "DATABASE_URL",
    "VIRTUAL_ENV",
    "CI",
    "LDFLAGS",
    "CPPFLAGS",
    "DJANGO_SETTINGS_MODULE",
    "NODE_ENV",
    "RUSTUP_HOME",
    "GRADLE_USER_HOME",
    "TESTCONTAINERS_HOST_OVERRIDE",
    "TEST_DATABASE_URL",
    "XDG_CONFIG_HOME",
    "LC_ALL",
    "PYTHONPATH",
    "PKG_CONFIG_PATH",
    "GOPROXY",
    "UV_CACHE_DIR",
)


@pytest.mark.parametrize(
    ("name", "value", "check"),
    [
        ("CDPATH", "/tmp/nowhere/..", "cd {sub} && sh t.sh"),
        ("SHELLOPTS", "noexec", "bash {sub}/t.sh"),
    ],
)
def test_no_option_of_a_shell_lets_a_check_pass(
    queen: Queen, repo: Path, tmp_path: Path, name: str, value: str, check: str
) -> None:
    commit_file(repo, f"{tmp_path.name}/t.sh", "exit 1\n")
    other = tmp_path / "other" / tmp_path.name
    other.mkdir(parents=True)
    (other / "t.sh").write_text("exit 0\n")
    git(repo, "worktree", "add", "-q", str(tmp_path / "ui"), "-b", "ui")
    commit_file(tmp_path / "ui", "x.txt", "x\n")
    value = str(other.parent) if name == "CDPATH" else value
    command = check.format(sub=tmp_path.name)
    done = queen("land", "--check", command, as_="ui", cwd=tmp_path / "ui", env={name: value})
    assert done.code == 1, done


@pytest.mark.parametrize("name", [*sorted(RUNNERS), *ALIKE])
def test_no_option_of_a_runner_reaches_the_check_of_a_landing(tmp_path: Path, name: str) -> None:
    env = {name: "x", "PATH": "/bin", "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    assert for_a_landing(env, str(tmp_path)).keys() == {"PATH", "HOME"}
    (tmp_path / "config").write_text(f"[queenbee]\n\tenv = {name}\n")
    assert for_a_landing(env, str(tmp_path)).keys() == {name, "PATH", "HOME"}


def test_what_a_build_needs_does() -> None:
    assert for_a_landing(dict.fromkeys(NEEDED, "x"), None).keys() == {*NEEDED}


def test_an_agents_variable_does_not_name_them(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("[queenbee]\n\tenv = MAKEFLAGS\n")
    env = {"MAKEFLAGS": "n", "GIT_CONFIG_GLOBAL": str(tmp_path / "own"), "CLAUDECODE": "1"}
    assert "MAKEFLAGS" not in for_a_landing(env, None)


def test_a_bead_cannot_ask_for_them(
    quick: QuickQueen, repo: Path, tmp_path: Path, environment: None
) -> None:
    bead = ralph_bead("gt-1", f"{SHOWN} > {tmp_path / 'out'}; true")
    bead["dod"]["verifiers"][0]["env"] = [*SECRETS, "JAVA_HOME"]
    put_bead(repo, bead)
    assert quick("bead", "verify", "gt-1", as_="ui").code == 0
    assert names(tmp_path / "out") == ["JAVA_HOME"]


@pytest.mark.slow
class TestAnAgent:
    def test_gets_its_own_keys_and_the_person_is_told_of_the_others(self, team: Team) -> None:
        team.issues(1)
        team.queen.env |= {**SECRETS, **OTHERS}
        ran = team.start("ui", "--agent", team.agent(f"{SHOWN} > {team.bin / 'out'}\n{WORKS}"))
        assert ran.code == 0, ran
        assert names(team.bin / "out") == ["ANTHROPIC_API_KEY", "JAVA_HOME"]
        assert "agents do not get CI_JOB_TOKEN, GH_TOKEN, GITLAB_TOKEN, SSH_AUTH_SOCK" in ran.out

    @pytest.mark.thorough
    def test_gets_those_that_the_git_config_of_this_machine_names(self, team: Team) -> None:
        team.issues(1)
        git(team.repo, "config", "queenbee.env", "GH_TOKEN")
        team.queen.env |= {**SECRETS, **OTHERS}
        ran = team.start("ui", "--agent", team.agent(f"{SHOWN} > {team.bin / 'out'}\n{WORKS}"))
        assert names(team.bin / "out") == ["ANTHROPIC_API_KEY", "GH_TOKEN", "JAVA_HOME"]
        assert "agents do not get CI_JOB_TOKEN, GITLAB_TOKEN, SSH_AUTH_SOCK" in ran.out

    def test_does_its_landing_without_them(self, team: Team) -> None:
        hook = team.repo / ".git" / "hooks" / "post-commit"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\n{SHOWN} > {team.bin / 'hook'}\n")
        hook.chmod(0o755)
        team.set("land.check", f"{SHOWN} > {team.bin / 'check'}; true")
        team.issues(1)
        team.queen.env |= {**SECRETS, **OTHERS}
        assert team.start("ui", "--agent", team.agent(WORKS)).code == 0
        assert names(team.bin / "hook") == names(team.bin / "check") == sorted(OTHERS)


class TestTheConfig:
    def test_of_a_clone_is_not_read(self, tmp_path: Path) -> None:
        """A clone delivers files of the tree, and neither `.git/config` nor the user's."""
        (tmp_path / ".gitconfig").write_text("[queenbee]\n\tenv = GH_TOKEN\n")
        env = {**SECRETS, "HOME": str(tmp_path / "home"), "GIT_CONFIG_NOSYSTEM": "1"}
        assert "GH_TOKEN" not in without_tokens(env, str(tmp_path / ".git"))

    @pytest.mark.parametrize("place", [".gitconfig", ".config/git/config"])
    def test_of_the_user_counts(self, tmp_path: Path, place: str) -> None:
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("[queenbee]\n\tenv = GH_TOKEN\n")
        env = {**SECRETS, "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
        assert without_tokens(env, None).keys() & NAMES == {"GH_TOKEN"}

    def test_of_the_repository_comes_first(self, tmp_path: Path) -> None:
        (tmp_path / ".gitconfig").write_text("[queenbee]\n\tenv = GH_TOKEN\n")
        (tmp_path / "config").write_text("[queenbee]\n\tenv = CI_JOB_TOKEN\n")
        env = {**SECRETS, "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
        assert without_tokens(env, str(tmp_path)).keys() & NAMES == {"CI_JOB_TOKEN"}


def test_the_page_names_each_of_them() -> None:
    page = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
    assert [each for each in sorted(NAMES | RUNNERS) if f"`{each}`" not in page] == []
    assert [each for each in BEGINS if f"`{each}…`" not in page] == []
    assert [each for each in ENDS if f"`…{each}`" not in page] == []
