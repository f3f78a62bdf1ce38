"""Mutants: a module with one line broken on purpose, to prove that a check can fail."""

from __future__ import annotations

import importlib.util
import os
import sys
import types

import pytest


def mutant(module: types.ModuleType, old: str, new: str) -> types.ModuleType:
    """Returns a fresh copy of `module` whose source has `new` in place of `old`.

    `old` must occur exactly once, so that a mutant does not silently become the original when
    the code around it changes.

    While a mutation tool changes the code (tests/mutation), that would count as noticed, though
    no test looked at what the code does: such a test is skipped then.
    """
    if "QUEENBEE_UNDER_MUTATION" in os.environ:
        pytest.skip("the code is broken on purpose already")
    assert module.__file__ is not None
    with open(module.__file__, encoding="utf-8") as file:
        source = file.read()
    assert source.count(old) == 1, f"{old!r} occurs {source.count(old)} times in {module.__name__}"
    spec = importlib.util.spec_from_loader(f"{module.__name__}__mutant", loader=None)
    assert spec is not None
    broken = importlib.util.module_from_spec(spec)
    broken.__file__ = module.__file__
    broken.__package__ = module.__package__
    sys.modules[spec.name] = broken
    try:
        exec(compile(source.replace(old, new), module.__file__, "exec"), broken.__dict__)
    finally:
        del sys.modules[spec.name]
    return broken
