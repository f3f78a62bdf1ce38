"""Fixtures that all tests may use: a clean environment, a real repository, an open hive."""

from __future__ import annotations

import gc
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import extent
import hives
import hypothesis
import opened_databases
import postgres_server
import pytest
from hives import IDENTITY, Clock, Queen, QuickQueen, environment, git, write_lines
from templates import Template

from queenbee import Hive
from queenbee.store.callers import agent_above

# A shell that starts the tests in the background makes them, and all that they start, ignore
# Ctrl-C, and nohup makes them ignore SIGHUP: tests of either would then be tests of the shell.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# No timing is asserted, so no example has a deadline either; a busy machine is no failure.
hypothesis.settings.register_profile("quick", deadline=None, max_examples=extent.examples(100))
hypothesis.settings.register_profile("everything", deadline=None)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option of `make test-all`."""
    text = "run what is marked thorough too, and try every example"
    parser.addoption(extent.EVERYTHING, action="store_true", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Decides how much is tried, and on which disk, before any test is imported."""
    if extent.memory_is_a_disk("/dev/shm"):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")
    everything = config.getoption(extent.EVERYTHING)
    if everything:
        extent.try_everything()
    hypothesis.settings.load_profile("everything" if everything else "quick")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """Returns one worker more than there are cores: for a third of their time, tests wait."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collects no garbage meanwhile, nor later what was made: 16,000 tests are kept to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is for `make test-all`; skips what only Linux can show, elsewhere."""
    if not config.getoption(extent.EVERYTHING):
        spread = extent.Spread(_of_its_test(item) for item in items)
        chosen, left_out = [], []
        for item in items:
            is_quick = not item.get_closest_marker("thorough") and spread.takes(_of_its_test(item))
            (chosen if is_quick else left_out).append(item)
        config.hook.pytest_deselected(items=left_out)
        items[:] = chosen
    if sys.platform != "linux":
        for item in items:
            if item.get_closest_marker("linux"):
                item.add_marker(pytest.mark.skip(reason="this system is not Linux"))


def _of_its_test(item: pytest.Item) -> tuple[str, int]:
    """Returns the test that an item is a case of, and how many cases `make test` runs of it."""
    marker = item.get_closest_marker("some")
    return item.nodeid.partition("[")[0], marker.args[0] if marker else 0


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test sees who runs it, in which repository, with which git settings, or what it opened."""
    clean_environment(monkeypatch)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "user-state"))


def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes what would tell commands of the session that runs the tests."""
    for name in (
        *IDENTITY,
        "BEADS_DIR",
        "QUEEN_DEBUG",
        "QUEEN_DURABILITY",
        postgres_server.URL,
        "NO_COLOR",
        "FORCE_COLOR",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "COLUMNS",
    ):
        monkeypatch.delenv(name, raising=False)
    agents = [name for name in os.environ if name.startswith(("CODEX_", "CLAUDE", "COPILOT_"))]
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "PGSERVICE", *agents):
        monkeypatch.delenv(name, raising=False)
    if hives.BELOW_CLIENT:
        monkeypatch.setattr(agent_above, "_has_client_above", bool)
    # Else each command that a test starts would compile all that it imports.
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    settings = {"user.name": "Tester", "user.email": "t@example.com", "init.defaultBranch": "main"}
    settings["maintenance.auto"] = "false"  # Else each commit starts a process that finds nothing.
    # Most tests write their checks, beads and gates by hand. The last, for `asking`.
    settings["queenbee.trust"] = "all"
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CONFIG_COUNT", str(len(settings)))
    for number, (key, value) in enumerate(settings.items()):
        monkeypatch.setenv(f"GIT_CONFIG_KEY_{number}", key)
        monkeypatch.setenv(f"GIT_CONFIG_VALUE_{number}", value)


@pytest.fixture
def asking(_clean_environment: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine on which nobody has seen any command; returns the user's folder for state."""
    monkeypatch.setenv("GIT_CONFIG_COUNT", str(int(os.environ["GIT_CONFIG_COUNT"]) - 1))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs the tests of a module with the mark `both_engines` over files and over PostgreSQL."""
    marked = metafunc.definition.get_closest_marker
    both = marked("both_engines")
    if both and not marked("only_files"):
        thorough = pytest.mark.thorough if both.kwargs.get("thorough") else ()
        over = ["files", pytest.param("postgres", marks=thorough)]
        metafunc.parametrize("engine", over, indirect=True)


@pytest.fixture(scope="session")
def _server() -> Iterator[postgres_server.Server]:
    """One PostgreSQL for all tests of this process."""
    try:
        with postgres_server.running() as server:
            yield server
    except ImportError as error:
        pytest.skip(f"no PostgreSQL can be started here: {error}")


@pytest.fixture
def server(
    _server: postgres_server.Server, monkeypatch: pytest.MonkeyPatch
) -> Iterator[postgres_server.Server]:
    """A real PostgreSQL, which the environment names; what a test opens is closed after it."""
    import psycopg

    opened: list[psycopg.Connection[Any]] = []
    connect = psycopg.connect

    def noting(*arguments: Any, **more: Any) -> psycopg.Connection[Any]:
        opened.append(connect(*arguments, **more))
        return opened[-1]

    monkeypatch.setattr(psycopg, "connect", noting)
    monkeypatch.setenv(postgres_server.URL, _server.url)
    yield _server
    for each in opened:
        each.close()


@pytest.fixture(autouse=True)
def engine(_clean_environment: None, request: pytest.FixtureRequest) -> str:
    """Where the hive of `repo` is kept: `files`, or `postgres` as well for modules marked so."""
    name = str(getattr(request, "param", "files"))
    if name == "postgres":
        server = request.getfixturevalue("server")
        postgres_server.use(request.getfixturevalue("beads"), server)
    return name


@pytest.fixture(autouse=True)
def _collecting() -> Iterator[None]:
    """What only a process that soon ends may do, no test has left behind."""
    yield
    assert gc.isenabled()


@pytest.fixture(autouse=True)
def databases(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[sqlite3.Connection]]:
    """The databases that a test has opened in this process. They are closed with it, as they would
    be with the process of a command: Python 3.13 and later complain of what stays open.
    """
    opened = opened_databases.note(monkeypatch)
    yield opened
    opened_databases.close(opened)


@pytest.fixture
def clock() -> Clock:
    """A clock that moves only when told to."""
    return Clock()


@pytest.fixture
def frozen(clock: Clock, engine: str, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The same clock, also for commands that run in this process, and as the database's."""
    monkeypatch.setattr(time, "time_ns", lambda: clock.now_ms * 1_000_000)
    if engine == "postgres":
        postgres_server.set_clock(monkeypatch, clock)
    return clock


@pytest.fixture(scope="session")
def _template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    """What `repo` is a copy of."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        clean_environment(monkeypatch)
        return Template(tmp_path_factory.mktemp("template"))


@pytest.fixture
def repo(tmp_path: Path, _template: Template) -> Path:
    """A real git repository with one commit and a hive in it."""
    tree = tmp_path / "repo"
    _template.copy(tree)
    return tree


@pytest.fixture
def beads(repo: Path) -> Path:
    """The `.beads/` of `repo`."""
    return repo / ".beads"


@pytest.fixture
def open_as(repo: Path, clock: Clock) -> Callable[[str], Hive]:
    """Opens the hive of `repo` for a droid, at the clock that the test moves."""

    def opened(droid: str) -> Hive:
        return Hive.open(repo, droid=droid, env=environment(), clock=clock)

    return opened


@pytest.fixture
def open_beside(repo: Path, clock: Clock) -> Callable[[str], Hive]:
    """Opens the same hive for a droid that has a worktree of its own."""

    def opened(droid: str) -> Hive:
        tree = repo.parent / f"tree-of-{droid}"
        if not tree.exists():
            git(repo, "worktree", "add", "-q", str(tree), "-b", f"of-{droid}")
        return Hive.open(tree, droid=droid, env=environment(), clock=clock)

    return opened


@pytest.fixture
def hive(open_as: Callable[[str], Hive]) -> Hive:
    """The hive of `repo`, open for `ui-engineer`."""
    return open_as("ui-engineer")


@pytest.fixture
def reviewer(open_as: Callable[[str], Hive]) -> Hive:
    """The same hive, open for `reviewer`."""
    return open_as("reviewer")


@pytest.fixture
def queen(repo: Path) -> Queen:
    """The real command, in a process of its own, run in `repo`."""
    return Queen(repo)


@pytest.fixture
def quick(repo: Path, monkeypatch: pytest.MonkeyPatch) -> QuickQueen:
    """The command's entry point, in this process, run in `repo`."""
    monkeypatch.setenv("QUEEN_DURABILITY", "buffered")
    return QuickQueen(repo)


@pytest.fixture
def small(quick: QuickQueen, repo: Path) -> Path:
    """A repository as most are: settings as they were made, and a few records of each kind."""
    quick("init")
    write_lines(repo / ".beads" / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "open"})
    quick("msg", "send", "ui-engineer", "hello", as_="reviewer")
    quick("reserve", "docs/**", as_="reviewer")
    return repo
