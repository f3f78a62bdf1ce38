"""The installed commands import nothing from the repository that they are used in, whatever
`PYTHONPATH` says and whatever the repository's files are called.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"
LIBRARY = str(Path(__file__).parents[1])
SHADOWS = (
    "json", "re", "click", "queenbee", "orjson", "filelock", "ulid", "time", "errno", "threading",
    "subprocess", "importlib", "dataclasses", "typing", "shutil", "random", "tomllib", "datetime",
)  # fmt: skip
EVENT = {
    "hook_event_name": "PreToolUse",
    "session_id": "s",
    "tool_name": "Write",
    "tool_input": {"file_path": "src/app.py"},
}


@pytest.fixture
def trapped(repo: Path) -> Path:
    """A repository whose files are called like modules, and say so when they are imported."""
    for name in SHADOWS:
        for folder in (repo, repo / "src"):
            folder.mkdir(exist_ok=True)
            trap = "import sys; sys.stderr.write('TRAPPED %s' % __name__)\nraise SystemExit(99)\n"
            (folder / f"{name}.py").write_text(trap)
    return repo


def run(
    script: str | Path, *arguments: str, cwd: Path, path: str, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Runs an installed script as it is started by its first line."""
    return subprocess.run(
        [sys.executable, str(script), *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path, "QUEEN_DROID": "mo"},
        input=stdin,
        capture_output=True,
        text=True,
    )


def outside(tmp_path: Path) -> str:
    """Returns a folder outside the repository with a module that the user did put on the path."""
    folder = tmp_path / "mine"
    folder.mkdir(exist_ok=True)
    return str(folder)


PATHS = [
    ".",
    ":{mine}:.",
    "{mine}/../repo",
    *(
        pytest.param(path, marks=pytest.mark.thorough)
        for path in ("", ":", "src:", "{mine}:", "{repo}", "{repo}/src", "src/..")
    ),
]
"""For each way to write the same, `test_of_the_path_only_what_leads_into_the_repository_goes`."""


@pytest.mark.parametrize("path", PATHS)
def test_queen_imports_nothing_from_the_repository(
    trapped: Path, tmp_path: Path, path: str
) -> None:
    path = path.format(repo=trapped, mine=outside(tmp_path))
    commands = (("init",), ("msg", "send", "bob", "hello"), ("doctor", "--json"), ("prompt",))
    for arguments in commands:
        ran = run(SCRIPTS / "queen", *arguments, cwd=trapped, path=path)
        assert (ran.returncode, "TRAPPED" in ran.stderr) == (0, False), ran


@pytest.mark.parametrize("path", PATHS)
def test_the_hook_imports_nothing_from_the_repository(
    trapped: Path, tmp_path: Path, path: str
) -> None:
    path = path.format(repo=trapped, mine=outside(tmp_path))
    held = run(SCRIPTS / "queen", "reserve", "src/**", "--as", "bob", cwd=trapped, path="")
    assert held.returncode == 0, held
    event = json.dumps({**EVENT, "cwd": str(trapped)})
    for cwd in (trapped, trapped / "src"):
        ran = run(SCRIPTS / "queen-hook", cwd=cwd, path=path, stdin=event)
        assert "TRAPPED" not in ran.stderr, ran
        assert json.loads(ran.stdout)["hookSpecificOutput"]["permissionDecision"] == "deny"


def isolated(source: str, path: list[str], given: list[str], repo: Path) -> list[str]:
    """Returns what `isolate` in the source of a script leaves of a path."""
    functions: dict[str, Any] = {"__file__": str(SCRIPTS / "queen")}
    exec(source.partition("\nif sys.getfile")[0], functions)
    functions["isolate"](path, given, str(repo))
    return path


def check_what_stays(source: str, repo: Path, tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    patch.chdir(repo)
    (tmp_path / "link").symlink_to(repo)
    mine, link, beside = (str(tmp_path / name) for name in ("mine", "link/src", "repo-2"))
    given = [".", "", mine, f"{repo}/src", link, beside]
    kept = [mine, beside, f"{repo}/.venv/lib/python3/site-packages", "/usr/lib/python3"]
    path = ["", "src", str(SCRIPTS), str(repo), f"{repo}/src", link, *kept]
    assert isolated(source, path, given, repo) == kept


def test_of_the_path_only_what_leads_into_the_repository_goes(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_what_stays((SCRIPTS / "queen").read_text(), repo, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("not own and not", "not"),
        ("(ours and element in given)", "ours"),
        ("(ours and element in given)", "(element in given)"),
        ("if not os.path.isabs(element)", "if False"),
        ('os.path.join(top or os.devnull, "")', "top or os.devnull"),
        ("os.path.abspath(each) for", "each for"),
        ("os.path.join(os.path.realpath(element)", "os.path.join(element"),
    ],
)
def test_a_script_that_keeps_out_more_or_less_is_noticed(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    source = (SCRIPTS / "queen").read_text()
    assert source.count(old) == 1
    with pytest.raises(AssertionError):
        check_what_stays(source.replace(old, new), repo, tmp_path, monkeypatch)


def test_a_checkout_of_the_library_itself_stays_on_the_path() -> None:
    """An editable install puts it there, not the environment."""
    plain = {name: each for name, each in os.environ.items() if name != "PYTHONPATH"}
    program = f"import runpy; runpy.run_path({str(SCRIPTS / 'queen')!r}, run_name='__main__')"
    ran = subprocess.run(
        [sys.executable, "-P", "-c", program, "--version"],
        cwd=LIBRARY,
        env=plain,
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_outside_git_the_working_directory_is_kept_out(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit(99)\n")
    ran = run(SCRIPTS / "queen", "hive", "where", cwd=tmp_path, path=".")
    assert ran.returncode != 99, ran
    assert "hive" in ran.stderr + ran.stdout


def test_the_two_scripts_differ_in_their_last_import_alone() -> None:
    queen, hook = ((SCRIPTS / name).read_text() for name in ("queen", "queen-hook"))
    plain = "from queenbee.hook.main import main  # noqa: E402 - only now\n"
    whole = "from queenbee.cli.main import main\n"
    assert hook.replace(plain, whole).split("\n", 6)[6] == queen.split("\n", 6)[6]
    assert queen.startswith("#!python\n")
