from __future__ import annotations

import contextlib
import functools

import pytest

from queenbee import _light


@pytest.mark.parametrize("suppress", [_light.suppress, contextlib.suppress])
class TestSuppress:
    """As the library's does: both are asked the same."""

    def test_an_error_of_the_kinds_ends_the_block(self, suppress):
        reached = []
        with suppress(OSError, KeyError):
            reached.append(1)
            raise FileNotFoundError
        assert reached == [1]

    def test_other_errors_pass(self, suppress):
        with pytest.raises(ValueError), suppress(OSError):
            raise ValueError

    def test_without_an_error_the_block_runs_to_its_end(self, suppress):
        with suppress(OSError) as nothing:
            pass
        assert nothing is None

    def test_what_no_ordinary_error_is_passes_too(self, suppress):
        with pytest.raises(KeyboardInterrupt), suppress(Exception):
            raise KeyboardInterrupt


@pytest.mark.parametrize("nullcontext", [_light.nullcontext, contextlib.nullcontext])
def test_a_null_context_gives_what_it_was_given_and_passes_errors(nullcontext):
    with nullcontext() as nothing, nullcontext(3) as three:
        assert (nothing, three) == (None, 3)
    with pytest.raises(ValueError), nullcontext():
        raise ValueError


@pytest.mark.parametrize("cached", [_light.cached_property, functools.cached_property])
def test_a_cached_property_asks_once_for_each_object_and_can_be_forgotten(cached):
    asked = []

    class Thing:
        @cached
        def value(self):
            """A value."""
            asked.append(self)
            return len(asked)

    one, other = Thing(), Thing()
    assert (one.value, one.value, other.value) == (1, 1, 2)
    assert asked == [one, other]
    assert vars(one) == {"value": 1}
    del one.value
    assert one.value == 3
    assert Thing.value.__doc__ == "A value."
