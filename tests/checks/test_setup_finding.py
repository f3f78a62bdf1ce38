"""The command that sets up a worktree, as files of the repository say it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queenbee.checks.setup_finding import CODEX, CONDUCTOR, CURSOR, found_setup

LOCK_FILES = {
    "package-lock.json": "npm ci",
    "pnpm-lock.yaml": "pnpm install --frozen-lockfile",
    "yarn.lock": "yarn install --immutable",
    "bun.lock": "bun install --frozen-lockfile",
    "bun.lockb": "bun install --frozen-lockfile",
    "uv.lock": "uv sync --frozen",
    "poetry.lock": "poetry install",
    "Pipfile.lock": "pipenv sync",
    "requirements.txt": "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt",
    "Gemfile.lock": "bundle install",
    "composer.lock": "composer install",
    "mix.lock": "mix deps.get",
    ".gitmodules": "git submodule update --init",
}


def put(tree: Path, name: str, text: str) -> None:
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    (tree / name).write_text(text)


def command(tree: Path) -> str | None:
    found = found_setup(str(tree))
    return found.command if found is not None else None


@pytest.mark.parametrize(("name", "wanted"), LOCK_FILES.items())
def test_a_lock_file_says_which_package_manager(tmp_path: Path, name: str, wanted: str) -> None:
    put(tmp_path, name, "$(id)")
    found = found_setup(str(tmp_path))
    assert found is not None
    assert (found.command, found.source) == (wanted, name)


def test_an_old_yarn_has_another_word_for_it(tmp_path: Path) -> None:
    put(tmp_path, "yarn.lock", "# yarn lockfile v1\n")
    assert command(tmp_path) == "yarn install --frozen-lockfile"


def test_several_languages_are_installed_each_once(tmp_path: Path) -> None:
    for name in ("package-lock.json", "pnpm-lock.yaml", "uv.lock", "requirements.txt"):
        put(tmp_path, name, "")
    assert command(tmp_path) == "pnpm install --frozen-lockfile && uv sync --frozen"


def test_other_tools_are_asked_in_order_and_one_counts(tmp_path: Path) -> None:
    put(tmp_path, CODEX, '[setup]\nscript = """\n# all\nmake deps\nmake db\n"""\n')
    assert command(tmp_path) == "make deps; make db"
    put(tmp_path, CONDUCTOR, json.dumps({"scripts": {"setup": "bin/setup"}}))
    assert command(tmp_path) == "bin/setup"
    put(tmp_path, CURSOR, json.dumps({"setup-worktree": "set up.sh"}))
    assert command(tmp_path) == "sh '.cursor/set up.sh'"
    both = {"setup-worktree": ["a"], "setup-worktree-unix": ["npm i", "cp $ROOT_WORKTREE_PATH/a ."]}
    put(tmp_path, CURSOR, json.dumps(both))
    assert command(tmp_path) == "npm i && cp $ROOT_WORKTREE_PATH/a ."
    put(tmp_path, "uv.lock", "")
    assert command(tmp_path) == "uv sync --frozen"


@pytest.mark.parametrize(
    "script",
    ["x\u202ey", "a\x1b[2Kb", "x" * 500, "if a; then\nb\nfi", "a \\\n b", "cat <<E\nE", ""],
)
def test_what_nobody_can_read_in_a_line_is_not_proposed(tmp_path: Path, script: str) -> None:
    put(tmp_path, CONDUCTOR, json.dumps({"scripts": {"setup": script}}))
    assert command(tmp_path) is None


def test_links_and_pipes_are_no_files(tmp_path: Path) -> None:
    (tmp_path / "uv.lock").symlink_to("/etc/hosts")
    os.mkfifo(tmp_path / "package-lock.json")
    (tmp_path / "mix.lock").mkdir()
    assert command(tmp_path) is None


@given(st.text())
def test_whatever_is_in_the_files_it_says_something(tmp_path_factory: object, text: str) -> None:
    tree = Path(tmp_path_factory.getbasetemp() / "any")  # type: ignore[attr-defined]
    for name in (CURSOR, CONDUCTOR, CODEX):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(text.encode(errors="surrogatepass"))
    found_setup(str(tree))
