"""The worked examples of the pages on checks, Ralph beads and gates print what the pages say."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

DOCS = pathlib.Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["checks.md", "ralph-beads.md", "gates.md"])
def test_the_worked_example_prints_what_the_page_says(page, tmp_path):
    text = (DOCS / page).read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (printed,) = re.findall(r"^```text\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == (printed, "")
