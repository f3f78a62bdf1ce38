"""A process that forks: the child holds no lock, and has a hive of its own: the parts inside."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from live_processes import child

from queenbee.errors import Busy
from queenbee.store.lock import KernelLock


def nothing() -> None:
    pass


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "lock")


def test_a_child_does_not_keep_the_lock_that_its_parent_held(path: str) -> None:
    held = KernelLock(path, holder="parent")
    held.__enter__()
    with child(nothing):
        held.__exit__(None, None, None)
        with KernelLock(path, holder="other", timeout_s=0):
            pass


def test_a_child_does_not_release_its_parents_lock(path: str) -> None:
    with (
        KernelLock(path, holder="parent"),
        child(nothing),
        pytest.raises(Busy, match="parent"),
    ):
        KernelLock(path, holder="other", timeout_s=0).__enter__()


def test_the_lock_of_a_parent_that_died_is_free_though_its_child_lives(path: str) -> None:
    ready, said = os.pipe()
    parent = os.fork()
    if parent == 0:
        KernelLock(path, holder="parent").__enter__()
        grandchild = os.fork()
        if grandchild == 0:
            os.write(said, b"%d" % os.getpid())
            signal.pause()
        signal.pause()
    grandchild = int(os.read(ready, 20))
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    try:
        with KernelLock(path, holder="other", timeout_s=0):
            pass
    finally:
        os.kill(grandchild, signal.SIGKILL)
