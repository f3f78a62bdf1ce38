"""Loaded into pytest: notes which test runs what and how long it takes, or runs the quick first."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Generator

import pytest

TIMES_TO = "MUTATION_TIMES_TO"
"""The environment variable that names the file to write the tests' durations to."""

TIMES_FROM = "MUTATION_TIMES_FROM"
"""The one that names the file to read them from."""

_times_s: Counter[str] = Counter()
_failed: set[str] = set()
"""Tests that fail without a mutant: some do because coverage imports more than they allow."""


def test_of(context: str) -> str:
    """Returns the test function that an id, or pytest's note in the environment, is about.

    Parameters are left out: a mutant may change them.
    """
    return context.partition("[")[0].partition(" (")[0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Tells coverage which test runs from here on."""
    if "COVERAGE_PROCESS_START" not in os.environ:
        return (yield)
    from coverage import Coverage

    measured = Coverage.current()
    assert measured is not None
    measured.switch_context(test_of(item.nodeid))
    try:
        return (yield)
    finally:
        measured.switch_context("")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Adds up what each test takes."""
    _times_s[test_of(report.nodeid)] += report.duration
    if report.failed:
        _failed.add(test_of(report.nodeid))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Writes the durations of what passed, in the one process that has all of them."""
    if TIMES_TO in os.environ and not hasattr(session.config, "workerinput"):
        passed = {test: took for test, took in _times_s.items() if test not in _failed}
        with open(os.environ[TIMES_TO], "w") as file:
            json.dump(passed, file)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the quick tests first: most mutants are caught by one of them."""
    if TIMES_FROM in os.environ:
        with open(os.environ[TIMES_FROM]) as file:
            times_s = json.load(file)
        items.sort(key=lambda item: times_s.get(test_of(item.nodeid), 0))
