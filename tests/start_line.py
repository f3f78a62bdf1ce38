"""Processes that wait at a line, and all begin at once: each answers a line with a line of JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def at_the_line(
    program: Path, *arguments: str, tree: Path, env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Starts one process and returns once it stands at the line."""
    with subprocess.Popen(
        [sys.executable, str(program), *arguments],
        cwd=tree,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def one_round(processes: list[subprocess.Popen[str]]) -> list[dict[str, Any]]:
    """Lets all begin at once and returns what each answered."""
    for each in processes:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    answers = []
    for each in processes:
        assert each.stdout is not None and each.stderr is not None
        line = each.stdout.readline()
        assert line, each.stderr.read()
        answers.append(json.loads(line))
    return answers
