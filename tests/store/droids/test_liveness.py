"""Processes: the one that runs us is found behind shells, and known to be gone when it is."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from queenbee.store.droids import liveness

IMPORT = f"import sys; sys.path[:0] = {sys.path!r}; from queenbee.store.droids import liveness"
CALLER = f"{IMPORT}; print(liveness.caller())"


def run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize(
    "command",
    [
        [sys.executable, "-c", CALLER],
        ["sh", "-c", '"$1" -c "$0"; true', CALLER, sys.executable],
        ["sh", "-c", 'sh -c \'"$1" -c "$0"; true\' "$0" "$1"; true', CALLER, sys.executable],
    ],
)
def test_shells_between_a_process_and_its_caller_do_not_count(command: list[str]) -> None:
    found = run(*command)
    assert found.split(" ")[1] == str(os.getpid())
    assert liveness.is_running(found) is True


def test_a_process_that_ended_is_not_running() -> None:
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {CALLER!r}])"
    assert liveness.is_running(run(sys.executable, "-c", code)) is False


@pytest.mark.linux
def test_another_process_with_the_same_id_is_not_the_one_that_was_noted() -> None:
    place, _, rest = liveness.caller().partition(" ")
    pid, _, begun = rest.partition(" ")
    assert liveness.is_running(f"{place} {pid} {begun}") is True
    assert liveness.is_running(f"{place} {pid} {int(begun) + 1}") is False


@pytest.mark.parametrize("noted", ["", "x", "elsewhere/pid:[1] 1 1", "elsewhere/ x y"])
def test_a_process_of_another_machine_cannot_be_told(noted: str) -> None:
    assert liveness.is_running(noted) is None


def test_without_proc_the_same_process_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = liveness.caller().split(" ")[:2]
    monkeypatch.setattr(liveness, "_look", liveness._of_ps)
    monkeypatch.setattr(liveness, "subprocess", subprocess, raising=False)
    assert liveness.caller().split(" ")[:2] == expected
    assert liveness.is_running(liveness.caller()) is True
