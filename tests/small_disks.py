"""File systems that are soon full."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(place: Path, size: str) -> Iterator[Path]:
    """Yields a file system of a size such as `4m`; skips where this process may not make one."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    if sys.platform != "linux" or os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("making a small file system takes root on Linux")
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("this machine does not allow mounting")
    yield place
    subprocess.run(["umount", str(place)], check=True)
