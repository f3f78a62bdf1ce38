"""What builds the packages that users get: pinned, with hashes, and all that the build asks for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_what_builds_the_packages_is_pinned_with_hashes() -> None:
    pinned = (ROOT / "packaging" / "build.txt").read_text("utf-8")
    blocks = re.findall(r"^(\S+)==\S+.*(?:\n .*)*", pinned, re.MULTILINE)
    hashed = re.findall(r"^(\S+)==\S+ .*\\\n    --hash=sha256:[0-9a-f]{64}", pinned, re.MULTILINE)
    assert blocks == hashed
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
    listed = (ROOT / "packaging" / "build.in").read_text("utf-8").split()
    assert {*wanted} < {*listed}
    assert {re.split(r"[<>=]", each)[0] for each in listed} <= {*blocks}
