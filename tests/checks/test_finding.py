"""The check that is proposed is what the files say, never a guess past them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from queenbee.checks.finding import found_checks


@pytest.mark.parametrize(
    ("name", "text", "command"),
    [
        ("Makefile", "all:\n\ntest: build\n\tpytest\n", "make test"),
        ("Makefile", "tests:\n\tx\ntest := 3\n", None),
        ("Makefile", "\ttest: x\n", None),
        ("justfile", "test *args:\n  x\n", "just test"),
        ("justfile", "test := 'x'\n", None),
        ("tox.ini", "[tox]\nenvlist = py3\n", "tox"),
        ("tox.ini", "[flake8]\n", None),
        ("pyproject.toml", "[tool.tox]\nrequires = []\n", "tox"),
        ("noxfile.py", "import nox\n", "nox"),
        ("pyproject.toml", "[tool.pytest.ini_options]\n", "pytest"),
        ("pyproject.toml", '[project.optional-dependencies]\ntest = ["pytest>=8"]\n', "pytest"),
        ("pyproject.toml", '[project]\nname = "pytest-like"\n', None),
        ("pytest.ini", "[pytest]\n", "pytest"),
        ("setup.cfg", "[tool:pytest]\n", "pytest"),
        ("requirements-dev.txt", "pytest==8.0\n", "pytest"),
        ("requirements.txt", "pytest-cov\n", None),
        ("package.json", '{"scripts": {"test": "vitest"}}', "npm test"),
        ("package.json", '{"scripts": {"test": "echo \\"Error: no test specified\\""}}', None),
        ("package.json", '{"scripts": []}', None),
        ("package.json", "{", None),
        ("Cargo.toml", '[package]\nname = "x"\n', "cargo test"),
        ("go.mod", "module example.com/x\n", "go test ./..."),
        ("README.md", "make test\n", None),
    ],
)
def test_each_kind_of_repository_names_its_tests(
    tmp_path: Path, name: str, text: str, command: str | None
) -> None:
    (tmp_path / name).write_text(text)
    assert found_checks(str(tmp_path)) == ([] if command is None else [command])


def test_what_runs_everything_is_first(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("test:\n")
    (tmp_path / "package.json").write_text('{"scripts": {"test": "x"}}')
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    assert found_checks(str(tmp_path)) == ["make test", "pytest", "npm test"]


def test_a_hostile_tree_stops_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "Makefile")
    (tmp_path / "justfile").symlink_to("/dev/zero")
    (tmp_path / "pyproject.toml").write_bytes(b"x = " + b"[" * 100_000)
    (tmp_path / "package.json").write_bytes(b"[" * 100_000)
    (tmp_path / "Cargo.toml").write_bytes(b"\xff\xfe")
    (tmp_path / "go.mod").mkdir()
    assert found_checks(str(tmp_path)) == []
