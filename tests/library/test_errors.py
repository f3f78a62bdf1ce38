"""Errors are values too: they pickle, and what they carry is declared."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

import pytest

import queenbee
from queenbee import Hive, errors
from queenbee.errors import BadPattern, Held, NotFound, QueenError, Taken

PACKAGE = Path(queenbee.__file__).parent


def every_error() -> Iterator[type[QueenError]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        if "Error" in (text := path.read_text("utf-8")) or "errors" in text:
            name = path.relative_to(PACKAGE).with_suffix("").parts
            if "scripts" not in name and name[-1] != "__main__":
                import_module(".".join(["queenbee", *name]).removesuffix(".__init__"))
    known: list[type[QueenError]] = [QueenError]
    for each in known:
        known += each.__subclasses__()
    yield from dict.fromkeys(each for each in known if each.__module__.startswith("queenbee."))


def made(kind: type[QueenError]) -> QueenError:
    """Returns one with all that it declares, whatever its constructor takes."""
    error = kind.__new__(kind, "a message")
    QueenError.__init__(error, "a message", hint="a hint", holders=[{"droid": "ui"}], files=["a"])
    return error


def test_every_error_pickles_and_can_be_copied() -> None:
    kinds = list(every_error())
    assert len(kinds) > 30
    for kind in kinds:
        error = made(kind)
        for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
            assert type(again) is kind
            assert vars(again) == vars(error)
            assert str(again) == "a message"


def test_an_error_names_the_calls_that_its_hint_means(hive: Hive, reviewer: Hive) -> None:
    reviewer.reservations.reserve(["src/**"])
    with pytest.raises(Held) as refused:
        hive.reservations.reserve(["src/a.py"])
    assert refused.value.calls == ("reservations.reserve", "messages.send")
    assert NotFound("x", hint="see: queen issue list; queen msg send ui 'queen undo'").calls == (
        "issues.find",
        "messages.send",
    )
    for hint in (None, "queen doctor", "queen nextdoor", "the next"):
        assert NotFound("x", hint=hint).calls == ()


def test_what_an_error_carries_is_an_attribute_of_it(hive: Hive, reviewer: Hive) -> None:
    reviewer.reservations.reserve(["src/**"])
    with pytest.raises(Held) as refused:
        hive.reservations.reserve(["src/a.py"])
    (holder,) = refused.value.holders
    assert (holder["droid"], holder["pattern"]) == ("reviewer", "src/**")
    assert refused.value.place is None
    with pytest.raises(BadPattern) as bad:
        hive.reservations.reserve(["src/[a"])
    assert (bad.value.pattern, bad.value.column) == ("src/[a", 5)
    assert pickle.loads(pickle.dumps(bad.value)).reason == bad.value.reason


def test_a_name_that_an_error_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="hodlers"):
        _ = Held("no").hodlers  # type: ignore[attr-defined]
    assert Held("no").holders == ()
    assert Taken("no").assignment is None
    assert NotFound("no", issue_id="qb-1").issue_id == "qb-1"


def reserve_badly(root: Path) -> None:
    with Hive.open(root, droid="pool", env={}) as hive:
        hive.reservations.reserve(["[a"])


def test_a_refusal_comes_back_from_a_pool_of_processes(repo: Path) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        for _ in range(2):  # The pool goes on.
            with pytest.raises(errors.BadPattern) as refused:
                pool.submit(reserve_badly, repo).result(timeout=60)
            assert refused.value.pattern == "[a"
