"""What sprints wait for: the document's table, the rules for what it leaves open, the laws."""

from __future__ import annotations

import re

import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from queenbee.documents.graphs import ancestors, find_cycles, sort_by_need
from queenbee.documents.plans.plan import parse_plan
from queenbee.documents.plans.plan_graph import (
    merges,
    number_dependencies,
    render_plan,
    render_text,
)
from queenbee.documents.sprints.numbers import sort_sprints

CASES: dict[str, dict[str, str]] = {
    "sequence": {"1.1": "", "1.2": "1.1", "1.3": "1.2"},
    "parallel sprints": {"1.1": "", "1.2a": "1.1", "1.2b": "1.1"},
    "merge": {"1.2a": "", "1.2b": "", "1.3": "1.2a 1.2b"},
    "phase split": {"2.1": "", "2.2": "2.1", "3a.1": "2.2", "3b.1": "2.2"},
    "phase converge": {"3a.1": "", "3a.2": "3a.1", "3b.1": "", "4.1": "3a.2 3b.1"},
    "split and converge": {
        "2.1": "", "3a.1": "2.1", "3a.2": "3a.1", "3b.1": "2.1", "4.1": "3a.2 3b.1",
    },
    "nested parallel": {"3a.1": "", "3a.2a": "3a.1", "3a.2b": "3a.1", "3a.3": "3a.2a 3a.2b"},
    "phase after a parallel group": {"1.1a": "", "1.1b": "", "2.1": "1.1a 1.1b"},
    "phase beginning with a group": {"1.1": "", "2.1a": "1.1", "2.1b": "1.1", "2.2": "2.1a 2.1b"},
    "group after a group": {"1.1a": "", "1.1b": "", "1.2a": "1.1a 1.1b", "1.2b": "1.1a 1.1b"},
    "gap in the sprints": {"1.1": "", "1.7": "1.1", "1.9": "1.7"},
    "gap in the phases": {"1.1": "", "4.1": "1.1", "9.2": "4.1"},
    "not beginning at one": {"3.2": "", "3.3": "3.2"},
    "numbers and not text": {"1.2": "", "1.10": "1.2", "2.1": "1.10", "10.1": "2.1"},
    "tracks that split again": {
        "3a.1": "", "3ab.1": "3a.1", "3ac.1": "3a.1", "3b.1": "", "4.1": "3a.1 3ab.1 3ac.1 3b.1",
    },
    "track under a missing parent": {"2.1": "", "3ab.1": "2.1", "4.1": "3ab.1"},
    "track under a parent's parent": {"3a.1": "", "3abc.1": "3a.1"},
    "phase split of itself": {"3.1": "", "3a.1": "3.1", "3b.1": "3.1", "4.1": "3.1 3a.1 3b.1"},
    "tracks of unlike length": {"3a.1": "", "3b.1": "", "3b.2": "3b.1", "4.1": "3a.1 3b.2"},
    "tracks after tracks": {"3a.1": "", "3b.1": "", "4a.1": "3a.1 3b.1", "4b.1": "3a.1 3b.1"},
    "number with and without letters": {"1.1": "", "1.2": "1.1", "1.2a": "1.1", "1.3": "1.2 1.2a"},
    "many letters": {"1.1aa": "", "1.1ab": "", "1.2": "1.1aa 1.1ab"},
    "alone": {"7.3b": ""},
    "none": {},
}  # fmt: skip

sprint_numbers = st.builds(
    lambda phase, track, group, letters: f"{phase}{track}.{group}{letters}",
    st.integers(0, 4),
    st.sampled_from(["", "a", "b", "ab", "abc", "ac"]),
    st.integers(0, 12),
    st.sampled_from(["", "a", "b", "ab"]),
)
plans = st.lists(sprint_numbers, max_size=40, unique=True)


class TestNumbers:
    @pytest.mark.parametrize("name", CASES)
    def test_say_what_each_sprint_waits_for(self, name: str) -> None:
        wanted = {sprint: tuple(needs.split()) for sprint, needs in CASES[name].items()}

        assert number_dependencies(wanted) == wanted

    @pytest.mark.parametrize("name", CASES)
    def test_the_order_in_the_plan_does_not_matter(self, name: str) -> None:
        wanted = {sprint: tuple(needs.split()) for sprint, needs in CASES[name].items()}

        assert number_dependencies(reversed(list(wanted))) == wanted

    def test_a_non_number_is_refused(self) -> None:
        with pytest.raises(ValueError, match="'1' is not a sprint number"):
            number_dependencies(["1"])


def test_a_sprint_waits_for_the_whole_group_before_it() -> None:
    graph = number_dependencies(["1.1a", "1.1b", "1.2"])
    assert {"1.1a", "1.1b"} <= ancestors(graph, ["1.2"])


class TestLaws:
    @settings(deadline=None)
    @given(plans)
    def test_no_numbers_make_a_cycle(self, sprints: list[str]) -> None:
        assert find_cycles(number_dependencies(sprints)) == []

    @pytest.mark.slow
    @settings(deadline=None)
    @given(plans)
    def test_a_sprint_waits_only_for_what_sorts_before_it(self, sprints: list[str]) -> None:
        place = {sprint: at for at, sprint in enumerate(sort_sprints(sprints))}

        for sprint, needs in number_dependencies(sprints).items():
            assert all(place[need] < place[sprint] for need in needs)

    @settings(deadline=None)
    @given(plans)
    def test_a_later_number_of_a_track_comes_after_all_earlier_ones(
        self, sprints: list[str]
    ) -> None:
        graph = number_dependencies(sprints)
        numbers = {sprint: re.fullmatch(r"(.*)\.(\d+)[a-z]*", sprint) for sprint in sprints}

        for sprint, mine in numbers.items():
            earlier = {
                other
                for other, its in numbers.items()
                if mine and its and its[1] == mine[1] and int(its[2]) < int(mine[2])
            }
            assert earlier <= ancestors(graph, [sprint])

    @settings(deadline=None)
    @given(plans)
    def test_a_later_phase_comes_after_the_whole_of_the_earlier_ones(
        self, sprints: list[str]
    ) -> None:
        graph = number_dependencies(sprints)
        for sprint in sprints:
            phase = int(re.match(r"\d+", sprint)[0])  # type: ignore[index]
            earlier = {other for other in sprints if int(re.match(r"\d+", other)[0]) < phase}  # type: ignore[index]

            assert earlier <= ancestors(graph, [sprint])

    @pytest.mark.slow
    @settings(deadline=None)
    @given(plans)
    def test_letters_of_one_number_do_not_wait_for_each_other(self, sprints: list[str]) -> None:
        graph = number_dependencies(sprints)
        for sprint in sprints:
            beside = {other for other in sprints if _bare(other) == _bare(sprint)}

            assert not beside & ancestors(graph, [sprint])


def _bare(sprint: str) -> str:
    return re.sub("[a-z]+$", "", sprint)


class TestMerges:
    def joined(self, *sprints: str) -> dict[str, tuple[str, ...]]:
        return merges(number_dependencies(sprints))

    def test_a_sprint_after_a_parallel_group_joins_it(self) -> None:
        assert self.joined("1.1", "1.2a", "1.2b", "1.3") == {"1.3": ("1.2a", "1.2b")}

    def test_a_phase_after_parallel_tracks_joins_them(self) -> None:
        assert self.joined("3a.1", "3a.2", "3b.1", "4.1") == {"4.1": ("3a.2", "3b.1")}

    def test_a_group_of_one_is_nothing_to_join(self) -> None:
        assert self.joined("1.1a", "1.2", "2.1") == {}

    def test_each_of_a_group_joins_the_group_before(self) -> None:
        assert set(self.joined("1.1a", "1.1b", "1.2a", "1.2b")) == {"1.2a", "1.2b"}

    def test_what_another_need_waits_for_is_not_joined_again(self) -> None:
        assert self.joined("3a.1", "3ab.1", "3b.1", "4.1") == {"4.1": ("3ab.1", "3b.1")}
        assert self.joined("3.1", "3a.1", "4.1") == {}


class TestRendering:
    @pytest.fixture
    def text(self) -> str:
        return (
            "## Phase 1: Core\n### Sprint 1.1: Setup\n### Sprint 1.2a: Backend (parallel)\n"
            '### Sprint 1.2b: "Front" <end> #1\n### Sprint 1.3: Integration\n'
        )

    def test_as_mermaid_with_its_marks_escaped(self, text: str) -> None:
        assert render_plan(parse_plan(text), "mermaid") == (
            "flowchart LR\n"
            '  n0["1.1 Setup"]\n'
            '  n1["1.2a Backend (parallel)"]\n'
            '  n2["1.2b #quot;Front#quot; #lt;end#gt; #35;1"]\n'
            '  n3["1.3 Integration (merge)"]\n'
            "  n0 --> n1\n  n0 --> n2\n  n1 --> n3\n  n2 --> n3\n"
        )

    def test_as_dot_with_its_quotes_escaped(self, text: str) -> None:
        rendered = render_plan(parse_plan(text), "dot")

        assert '  "1.2b" [label="1.2b \\"Front\\" <end> #1"];' in rendered
        assert '  "1.2a" -> "1.3";' in rendered

    def test_escape_sequences_do_not_reach_the_terminal(self) -> None:
        plan = parse_plan("### Sprint 1.1: a\x1b[31mb\n")

        for form in ("text", "mermaid", "dot"):
            assert "\x1b" not in render_plan(plan, form)


class TestGraphs:
    def test_every_node_on_a_cycle_is_on_a_reported_one(self) -> None:
        graph = {"a": ["b"], "b": ["c", "a"], "c": ["a"], "d": ["a"], "e": ["e"], "f": ["gone"]}

        told = {node for cycle in find_cycles(graph) for node in cycle}

        assert told == {"a", "b", "c", "e"}

    def test_many_cycles_are_not_all_told(self) -> None:
        assert len(find_cycles({str(node): [str(node)] for node in range(100)})) == 20

    @settings(max_examples=examples(200))
    @given(st.dictionaries(st.integers(0, 7), st.lists(st.integers(0, 9), max_size=3)))
    def test_a_cycle_is_reported_exactly_when_there_is_one(
        self, edges: dict[int, list[int]]
    ) -> None:
        graph = {str(node): [str(need) for need in needs] for node, needs in edges.items()}
        on_cycles = {node for node in graph if node in ancestors(graph, [node])}

        cycles = find_cycles(graph)

        assert {node for cycle in cycles for node in cycle} == on_cycles
        for cycle in cycles:
            assert all(
                need in graph[node]
                for node, need in zip(cycle, (*cycle[1:], cycle[0]), strict=True)
            )

    @settings(deadline=None)
    @given(st.dictionaries(st.integers(0, 7), st.lists(st.integers(0, 9), max_size=3)))
    def test_nodes_are_put_after_what_they_need(self, edges: dict[int, list[int]]) -> None:
        graph = {str(node): [str(need) for need in needs] for node, needs in edges.items()}

        ordered = sort_by_need(graph)

        assert sorted(ordered) == sorted(graph)
        if not find_cycles(graph):
            place = {node: at for at, node in enumerate(ordered)}
            for node, needs in graph.items():
                assert all(place[need] < place[node] for need in needs if need in place)

    @pytest.mark.slow
    def test_a_chain_of_any_length_does_not_exhaust_the_stack(self) -> None:
        graph = {str(node): [str(node + 1)] for node in range(20_000)} | {"20000": ["0"]}

        (cycle,) = find_cycles(graph)

        assert len(cycle) == 20_001


def test_a_phase_without_a_title_is_named_by_its_number() -> None:
    plan = parse_plan("### Sprint 2.1: Pages\n- Write them\n")
    assert render_text(plan).splitlines()[0] == "Phase 2"
