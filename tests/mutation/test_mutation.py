"""The run of mutants: what is tried is chosen fairly, and a verdict says what happened."""

from __future__ import annotations

import os
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

from mutation import report, sampling, selection
from mutation.plugin import test_of as function_of
from mutation.report import NO_TEST, Tried
from mutation.running import Copy, caught, limit_s

SOURCE = textwrap.dedent(
    """\
    LIMIT = 3

    @cached
    def capped(
        amount=0,
    ):
        if amount > LIMIT and (
            amount > 0
        ):
            return LIMIT
        return amount

    class Box:
        size = 1

        def grow(self):
            self.size += 1
    """
)


COUNTS = {"b.py": 50, "a.py": 150}
LINES = {
    1: [],
    7: ["tests/core/test_a.py::test_one", "tests/store/test_b.py::test_far"],
    10: ["tests/core/test_a.py::test_two"],
    17: ["tests/core/test_a.py::test_three"],
}


class TestASample:
    def test_of_one_seed_is_the_same_whatever_the_order_of_the_modules(self) -> None:
        turned = dict(reversed(COUNTS.items()))
        assert sampling.sample(COUNTS, 20, 1) == sampling.sample(turned, 20, 1)

    def test_of_another_seed_is_another_one(self) -> None:
        assert sampling.sample(COUNTS, 20, 1) != sampling.sample(COUNTS, 20, 2)

    def test_has_no_mutant_twice_and_none_that_is_not_there(self) -> None:
        chosen = sampling.sample(COUNTS, 199, 1)
        assert len(set(chosen)) == 199
        assert all(number < COUNTS[path] for path, number in chosen)

    @pytest.mark.parametrize("size", [None, 200, 1000])
    def test_of_all_is_all(self, size: int | None) -> None:
        assert len(sampling.sample(COUNTS, size, 1)) == 200

    def test_says_how_sure_it_makes(self) -> None:
        low, high = sampling.interval(80, 100)
        assert (round(low, 3), round(high, 3)) == (0.711, 0.867)
        assert sampling.interval(0, 0) == (0.0, 1.0)


class TestTheTestsOfALine:
    @pytest.mark.parametrize(
        ("line", "header", "in_function"),
        [
            (1, range(1, 2), False),
            (4, range(3, 7), False),
            (5, range(4, 7), False),
            (7, range(7, 10), True),
            (8, range(7, 10), True),
            (10, range(10, 11), True),
            (14, range(14, 15), False),
            (17, range(17, 18), True),
        ],
    )
    def test_are_those_of_its_statement_without_the_statements_inside(
        self, line: int, header: range, in_function: bool
    ) -> None:
        found, inside = selection.header_of(SOURCE, line)
        assert inside == in_function
        assert line in found
        assert set(found) <= set(header) | {line}

    def test_are_those_that_run_it(self) -> None:
        chosen = selection.tests_for(SOURCE, 8, LINES)
        assert chosen == ["tests/core/test_a.py::test_one", "tests/store/test_b.py::test_far"]

    def test_are_all_of_the_module_for_what_runs_at_import(self) -> None:
        chosen = selection.tests_for(SOURCE, 1, LINES)
        assert [each.rpartition("_")[2] for each in chosen] == ["one", "three", "two", "far"]

    def test_are_none_where_no_test_comes(self) -> None:
        assert selection.tests_for(SOURCE, 11, LINES) == []

    @pytest.mark.parametrize(
        "context",
        ["tests/a.py::T::test_x", "tests/a.py::T::test_x[a (b)]", "tests/a.py::T::test_x (call)"],
    )
    def test_are_told_apart_by_their_functions(self, context: str) -> None:
        assert function_of(context) == "tests/a.py::T::test_x"


class TestTheReport:
    def test_lists_every_survivor_and_counts_by_folder(self) -> None:
        tried = [
            Tried("queenbee/core/a.py", 0, 3, "-a\n+b", "caught by tests/core/test_a.py::test_x"),
            Tried("queenbee/core/a.py", 1, 4, "-c\n+d", "survived"),
            Tried("queenbee/store/b.py", 0, 5, "-e\n+f", "timeout"),
            Tried("queenbee/store/b.py", 7, 6, "-g\n+h", NO_TEST),
        ]
        counts = {"queenbee/core/a.py": 10, "queenbee/store/b.py": 20}
        text = report.page(tried, counts, seed=4, commit="abc", folders="core, store")
        assert "30 mutants of core, store.\nTried: 4, a sample, seed 4." in text
        assert "| core | 10 | 2 | 1 | 0 | 1 | 0 | 50.0 % (" in text
        assert "| together | 30 | 4 | 2 | 1 | 2 | 1 | 50.0 % (" in text
        survivors = text.partition("## Survivors")[2].partition("## Timeouts")[0]
        assert "`queenbee/core/a.py:4` (mutant 1), survived\n" in survivors
        assert "-g\n+h" in survivors
        assert "-a\n+b" not in survivors

    def test_says_when_nothing_survived(self) -> None:
        text = report.page([], {"queenbee/core/a.py": 0}, seed=1, commit="abc", folders="core")
        assert "None." in text

    @pytest.mark.parametrize("verdict", ["survived", NO_TEST])
    def test_counts_no_survivor_as_caught(self, verdict: str) -> None:
        assert not caught(verdict)


RULE = "queenbee/core/rule.py"


class TestAMutant:
    @pytest.fixture
    def copy(self, tmp_path: Path) -> Copy:
        """A copy of a small repository: one rule, a good test of it and one that tests nothing."""
        repository = tmp_path / "repository"
        (repository / "queenbee" / "core").mkdir(parents=True)
        (repository / "tests").mkdir()
        (repository / "queenbee" / "__init__.py").touch()
        (repository / "queenbee" / "core" / "__init__.py").touch()
        (repository / "queenbee" / "core" / "rule.py").write_text("def double(n): return n * 2\n")
        (repository / "tests" / "test_rule.py").write_text(
            "from queenbee.core.rule import double\n"
            "def test_good(): assert double(3) == 6\n"
            "def test_blind(): double(3)\n"
        )
        subprocess.run(["git", "init", "-q", str(repository)], check=True)
        here = os.path.dirname(__file__)
        shutil.copytree(here, repository / "tests" / "mutation")
        return Copy(str(repository), str(tmp_path / "copy"))

    @pytest.mark.some(2)
    @pytest.mark.parametrize(
        ("source", "test", "verdict"),
        [
            ("def double(n): return n * 2\n", "good", "survived"),
            ("def double(n): return n * 3\n", "good", "caught by tests/test_rule.py::test_good"),
            ("def double(n): return n * 3\n", "blind", "survived"),
            ("import time\ndef double(n): time.sleep(60)\n", "good", "timeout"),
            ("def triple(n): return n\n", "good", "caught by tests/test_rule.py"),
        ],
    )
    @pytest.mark.slow
    def test_is_caught_by_a_test_that_fails_or_hangs(
        self, copy: Copy, source: str, test: str, verdict: str
    ) -> None:
        limit = 5 if verdict == "timeout" else 60
        tests = [f"tests/test_rule.py::test_{test}"]
        before = Path(copy.path(RULE)).read_text()
        assert copy.try_source(RULE, source, tests, limit).startswith(verdict)
        assert Path(copy.path(RULE)).read_text() == before

    def test_has_more_time_than_its_tests_take(self) -> None:
        assert limit_s(["a", "b"], {"a": 1.5}) == 45


class TestTheMutantsOfAModule:
    def sources(self, source: str) -> list[str]:
        pytest.importorskip("mutmut")
        from mutation.mutants_of import Mutants

        mutants = Mutants(textwrap.dedent(source))
        assert len(mutants.lines) == len(mutants)
        return [mutants.diff(number).rpartition("\n+")[2] for number in range(len(mutants))]

    def test_change_one_thing_each(self) -> None:
        assert self.sources("def f(a):\n    return a <= 1\n") == [
            "    return a < 1",
            "    return a <= 2",
        ]

    def test_are_made_at_the_top_of_a_module_and_under_a_decorator_too(self) -> None:
        changed = self.sources("LIMIT = 3\nclass A:\n    @property\n    def b(self): return 7\n")
        assert changed == ["LIMIT = None", "LIMIT = 4", "    def b(self): return 8"]

    def test_are_not_made_of_what_never_runs(self) -> None:
        assert self.sources("TYPE_CHECKING = False\nif TYPE_CHECKING:\n    x = 1\n") == []
        assert self.sources("def f(a: int | None) -> list[int]: ...\n") == []
