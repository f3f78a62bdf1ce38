"""What is of a wrong type is refused where it is given, by checkers and when it runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from api_page import OF_ITS_OWN, OFFERED

from queenbee import Hive

ROOT = Path(__file__).parents[2]

SERVICES = (
    "assignments", "droids", "issues", "messages", "nudges", "plans", "queue", "reservations",
    "worktrees",
)  # fmt: skip

WRONG: dict[str, Callable[[Hive], object]] = {
    r"send: to must be a str, not list: \['lead'\]": lambda hive: hive.messages.send(["lead"], "x"),  # type: ignore[arg-type]
    r"reserve: patterns\[0\] must be a str, not NoneType": lambda hive: hive.reservations.reserve(
        [None]  # type: ignore[list-item]
    ),
    "reserve: patterns must be a list of str, not int": lambda hive: hive.reservations.reserve(7),  # type: ignore[arg-type]
    "reserve: timeout_s must be a number of seconds": lambda hive: hive.reservations.reserve(
        ["a"], timeout_s="1m"  # type: ignore[arg-type]
    ),
    "claim: issue_id must be a str, not NoneType": lambda hive: hive.assignments.claim(None),  # type: ignore[arg-type]
    "new: priority must be an int, not str": lambda hive: hive.issues.new("x", priority="high"),  # type: ignore[arg-type]
    "new: priority must be an int, not bool": lambda hive: hive.issues.new("x", priority=True),
    r"close: issue_ids\[1\] must be a str, not int": lambda hive: hive.issues.close("a", 1),  # type: ignore[arg-type]
    r"land: issue_ids\[0\] must be a str, not list": lambda hive: hive.land(["qb-1"]),  # type: ignore[arg-type]
    "land: unchecked must be a bool, not str": lambda hive: hive.land(unchecked="yes"),  # type: ignore[arg-type]
    "import_: name must be a str, not int": lambda hive: hive.issues.import_(b"", name=7),  # type: ignore[arg-type]
    "changes: since must be a str, not int": lambda hive: hive.changes(7),  # type: ignore[arg-type]
}  # fmt: skip


@pytest.mark.parametrize("said", WRONG)
def test_a_wrong_type_is_a_type_error_that_says_which(said: str, hive: Hive) -> None:
    with pytest.raises(TypeError, match=said):
        WRONG[said](hive)
    assert hive.reservations.find() == []
    assert hive.messages.inbox() == []


def test_what_is_left_out_and_what_is_none_where_it_may_be_is_right(hive: Hive) -> None:
    assert hive.reservations.reserve(("a", "b"), ttl_s=None, reason=None, timeout_s=0)
    assert hive.messages.send("ui-engineer", "x", subject=None)


@pytest.mark.slow
def test_the_examples_of_pages_pass_strict_typing(tmp_path: Path) -> None:
    files = [tmp_path / "wrong.py", ROOT / "docs" / "examples" / "harness.py"]
    files[0].write_text("from queenbee.errors import Held\nprint(Held('x').hodlers)\n")
    for page in ("api", "checks"):
        text = (ROOT / "docs" / f"{page}.md").read_text("utf-8")
        blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        assert blocks
        for number, block in enumerate(blocks):
            files.append(tmp_path / f"{page}_{number}.py")
            files[-1].write_text(block)
    [found, summary] = strictly(tmp_path, *files).splitlines()
    assert "wrong.py:2:" in found
    assert 'no attribute "hodlers"' in found
    assert summary.startswith("Found 1 error")


INFERRED = ("queenbee.tui.", "queenbee.library.async_hive.", "queenbee.AsyncHive")
"""Textual's classes are not wholly typed; `AsyncHive` takes the types of its calls from `Hive`."""


@pytest.mark.thorough  # pyright comes from npm when it is first called; mypy looks at the same.
def test_the_type_of_every_public_name_is_known() -> None:
    pyright = Path(sys.executable).with_name("pyright")
    if not pyright.exists():
        pytest.skip("pyright is not installed: pip install '.[lint]'")
    line = [pyright, "--pythonpath", sys.executable, "--outputjson"]
    line += ["--ignoreexternal", "--verifytypes", "queenbee"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(line, cwd=ROOT, env=env, capture_output=True, text=True, timeout=500)
    symbols = json.loads(done.stdout)["typeCompleteness"]["symbols"]
    assert len(symbols) > 1_000
    assert [
        each["name"]
        for each in symbols
        if each["isExported"]
        and not (each["isTypeKnown"] and not each["isTypeAmbiguous"])
        and not each["name"].startswith(INFERRED)
    ] == []


def strictly(folder: Path, *files: Path) -> str:
    """Returns what `mypy --strict` says of programs that use the library."""
    line = [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={folder / 'cache'}"]
    line += map(str, files)
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=500)
    return done.stdout if done.returncode else done.stderr


@pytest.mark.parametrize("name", OFFERED)
def test_each_attribute_of_an_open_hive_is_offered_or_known_as_ours(name: str, hive: Hive) -> None:
    """If it fails: begin the name with `_`, or put it into `OFFERED`, which docs/api.md shows."""
    objects = {type(each).__name__: each for each in (hive, *map(hive.__getattribute__, SERVICES))}
    found = {each for each in dir(objects[name]) if not each.startswith("_")}
    offered, ours = ({*table.get(name, "").split()} for table in (OFFERED, OF_ITS_OWN))
    assert found == offered | ours
    assert not offered & ours
    assert not [each for each in offered if not getattr(type(objects[name]), each, "x").__doc__]
