"""A repository that several users share: what one writes, the others can read and write."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hives import git

from queenbee import Hive
from queenbee.store import safe_open
from queenbee.store.logbook import note
from queenbee.workflows.locks import documents_lock

GROUP, ANN, BOB = 54_321, 54_322, 54_323

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")


@pytest.fixture
def shared(repo: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A repository that the group may write, as `git init --shared` makes it. Others cannot reach
    the folders of pytest, so it is elsewhere.
    """
    use(repo)  # Loads all modules: the users may not be able to read them.
    repo = Path(tempfile.mkdtemp())
    git(repo, "init", "-q", "--shared=group")
    (repo / ".beads").mkdir()
    for path in (repo, *repo.rglob("*")):
        os.chown(path, ANN, GROUP)
        if path.is_dir():
            path.chmod(0o2775)
    yield repo
    shutil.rmtree(repo)


def as_user(user: int, act: Callable[[], object]) -> None:
    """Acts in a child of that user and the group, with the usual umask."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(GROUP)
            os.setuid(user)
            os.umask(0o022)
            act()
            code = 0
        except BaseException as error:
            os.write(2, repr(error).encode())
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def use(repo: Path) -> None:
    """Writes every kind of file of the state."""
    with Hive.open(repo, droid="ui", env={}) as hive:
        hive.messages.send("api", "hello")
        with hive.transaction() as tx:
            for body in ("one", "two"):
                tx.create("messages", {"from": "ui", "to": "api", "body": body})
        with documents_lock(hive)():
            pass
        hive.rotate(older_than_s=0)
        safe_open.make_folder(os.path.join(hive.layout.state_dir, "told"))
        safe_open.append(os.path.join(hive.layout.state_dir, "told", "ui"), b"x\n")
        assert note(hive.layout.state_dir, "hook", "text")


def test_two_users_work_in_turns(shared: Path) -> None:
    for user in (ANN, BOB, ANN, BOB):
        as_user(user, lambda: use(shared))
    state = shared / ".git" / "queenbee"
    names = {path.relative_to(state).as_posix() for path in state.rglob("*")}
    assert {"lock", "documents.lock", "hook.log", "told/ui", "hive.sqlite3"} <= names
    for path in state.rglob("*"):
        wanted = 0o2070 if path.is_dir() else 0o060
        assert stat.S_IMODE(path.stat().st_mode) & wanted == wanted, path
        assert path.stat().st_gid == GROUP


def test_a_repository_that_is_not_shared_keeps_its_umask(repo: Path) -> None:
    before = os.umask(0o077)
    try:
        use(repo)
    finally:
        os.umask(before)
    for path in (repo / ".git" / "queenbee").rglob("*"):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path
