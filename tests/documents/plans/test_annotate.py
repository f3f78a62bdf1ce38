"""Annotations: exactly one under each heading, and every other byte as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from queenbee.documents.markdown import split_lines
from queenbee.documents.plans.plan import parse_plan
from queenbee.documents.plans.source_text import annotate_file, annotate_plan
from queenbee.errors import InvalidInput

BEADS = {"1.1": "bd-one", "1.2": "bd-two"}
NOTE = "<!-- beads-ralph: {} -->"


CASES = {
    "put": ("### Sprint 1.1: A\ntext\n", f"### Sprint 1.1: A\n{NOTE.format('bd-one')}\ntext\n"),
    "replaced": (
        f"### Sprint 1.1: A\n{NOTE.format('bd-old')}\ntext\n",
        f"### Sprint 1.1: A\n{NOTE.format('bd-one')}\ntext\n",
    ),
    "the second of two taken out": (
        f"### Sprint 1.1: A\n{NOTE.format('a')}\n{NOTE.format('b')}\ntext\n",
        f"### Sprint 1.1: A\n{NOTE.format('bd-one')}\ntext\n",
    ),
    "moved up from below an empty line": (
        f"### Sprint 1.1: A\n\n{NOTE.format('bd-old')}\n\ntext\n",
        f"### Sprint 1.1: A\n{NOTE.format('bd-one')}\n\n\ntext\n",
    ),
    "paragraphs that it kept apart stay apart": (
        f"### Sprint 1.1: A\none\n{NOTE.format('x')}\ntwo\n",
        f"### Sprint 1.1: A\n{NOTE.format('bd-one')}\none\n\ntwo\n",
    ),
    "written without spaces": (
        "### Sprint 1.1: A\n<!--beads-ralph:bd-old-->\n",
        f"### Sprint 1.1: A\n{NOTE.format('bd-one')}\n",
    ),
    "heading with dashes below it": (
        "Sprint 1.1: A\n---\ntext\n",
        f"Sprint 1.1: A\n---\n{NOTE.format('bd-one')}\ntext\n",
    ),
    "heading on the last line": (
        "text\n### Sprint 1.1: A",
        f"text\n### Sprint 1.1: A\n{NOTE.format('bd-one')}",
    ),
    "heading on the only line": (
        "### Sprint 1.1: A",
        f"### Sprint 1.1: A\n{NOTE.format('bd-one')}",
    ),
    "heading on the last line of DOS": (
        "text\r\n### Sprint 1.1: A",
        f"text\r\n### Sprint 1.1: A\r\n{NOTE.format('bd-one')}",
    ),
    "annotation on the last line": (
        f"### Sprint 1.1: A\n{NOTE.format('bd-old')}",
        f"### Sprint 1.1: A\n{NOTE.format('bd-one')}",
    ),
    "DOS line endings": (
        "### Sprint 1.1: A\r\ntext\r\n",
        f"### Sprint 1.1: A\r\n{NOTE.format('bd-one')}\r\ntext\r\n",
    ),
    "old Mac line endings": (
        "### Sprint 1.1: A\rtext\r",
        f"### Sprint 1.1: A\r{NOTE.format('bd-one')}\rtext\r",
    ),
    "mixed line endings": (
        "### Sprint 1.1: A\r\na\n### Sprint 1.2: B\nb\r\n",
        (
            "### Sprint 1.1: A\r\n<!-- beads-ralph: bd-one -->\r\na\n"
            "### Sprint 1.2: B\n<!-- beads-ralph: bd-two -->\nb\r\n"
        ),
    ),
    "byte order mark": (
        "\ufeff### Sprint 1.1: A\n",
        f"\ufeff### Sprint 1.1: A\n{NOTE.format('bd-one')}\n",
    ),
    "strange white space": (
        "a\x0b\x0c\u2028b\n### Sprint 1.1: A\n\x85c\n",
        f"a\x0b\x0c\u2028b\n### Sprint 1.1: A\n{NOTE.format('bd-one')}\n\x85c\n",
    ),
}

UNTOUCHED = {
    "in a fence": "```\n### Sprint 1.1: A\n```\n",
    "in a comment": "<!--\n### Sprint 1.1: A\n-->\n",
    "a near miss": "### Sprint 1.9: A\n## Notes\n### Sprint 11: A\n",
    "of another sprint": "### Sprint 1.9: A\n<!-- beads-ralph: bd-nine -->\n",
    "in a quotation": "> ### Sprint 1.1: A\n",
    "without any sprint": "# Plan\r\n\r\ntext",
    "empty": "",
}


class TestAnnotation:
    @pytest.mark.parametrize("name", CASES)
    def test_is_one_under_the_heading(self, name: str) -> None:
        before, after = CASES[name]

        assert annotate_plan(before, BEADS) == after

    @pytest.mark.parametrize("name", CASES)
    def test_done_twice_changes_nothing(self, name: str) -> None:
        once = annotate_plan(CASES[name][0], BEADS)

        assert annotate_plan(once, BEADS) == once

    @pytest.mark.parametrize("name", UNTOUCHED)
    def test_what_is_not_our_sprint_is_left_alone(self, name: str) -> None:
        assert annotate_plan(UNTOUCHED[name], BEADS) == UNTOUCHED[name]

    @pytest.mark.parametrize("identifier", ["", "a b", "a-->", "<x", "a--b", "a\nb"])
    def test_an_id_that_would_end_the_comment_is_refused(self, identifier: str) -> None:
        with pytest.raises(InvalidInput):
            annotate_plan("### Sprint 1.1: A\n", {"1.1": identifier})


pieces = st.sampled_from(
    [
        *("### Sprint 1.1: A", "### Sprint 1.2: B", "### Sprint 1.1 - C", "## Phase 1", "- task"),
        *("<!-- beads-ralph: bd-old -->", "<!-- beads-ralph: bd-one -->", "text", "", "---", "```"),
        *("> q", "    code", "<!--", "-->", "<div>", "1. x", "  <!-- beads-ralph: x -->", "\x0c"),
    ]
)
texts = st.lists(
    st.tuples(pieces | st.text(max_size=6), st.sampled_from(["\n", "\r\n", "\r"])), max_size=15
).map(lambda lines: "".join(text + ending for text, ending in lines))


class TestLaws:
    @pytest.mark.slow
    @settings(max_examples=examples(300))
    @given(texts, st.booleans())
    def test_done_twice_changes_nothing(self, text: str, unended: bool) -> None:
        text = text.rstrip("\r\n") if unended else text

        once = annotate_plan(text, BEADS)

        assert annotate_plan(once, BEADS) == once

    @pytest.mark.slow
    @settings(max_examples=examples(300))
    @given(texts)
    def test_every_other_line_stays_with_its_ending_and_in_its_order(self, text: str) -> None:
        def others(document: str) -> list[tuple[str, str]]:
            lines = [line for line in split_lines(document) if "beads-ralph" not in line[0]]
            return [line for line in lines if line[0].strip()]

        assert others(annotate_plan(text, BEADS)) == others(text)

    @pytest.mark.slow
    @settings(max_examples=examples(300))
    @given(texts)
    def test_the_sprints_stay_and_each_has_its_bead(self, text: str) -> None:
        before = [sprint.number for sprint in parse_plan(text).sprints]
        beads = {number: f"bd-{number}" for number in before}

        after = parse_plan(annotate_plan(text, beads)).sprints

        assert [sprint.number for sprint in after] == before
        assert [sprint.bead_id for sprint in after] == [beads[number] for number in before]

    def test_a_sprint_between_dashes_does_not_become_front_matter(self) -> None:
        annotated = annotate_plan("---\n### Sprint 1.1: A\n---\n", {"1.1": "bd-one"})

        assert [(each.number, each.bead_id) for each in parse_plan(annotated).sprints] == [
            ("1.1", "bd-one")
        ]


class TestFiles:
    def test_a_symbolic_link_stays_one(self, tmp_path: Path) -> None:
        plan = tmp_path / "real.md"
        plan.write_text("### Sprint 1.1: A\n")
        link = tmp_path / "plan.md"
        link.symlink_to("real.md")

        assert annotate_file(str(link), BEADS)
        assert link.is_symlink()
        assert "beads-ralph: bd-one" in plan.read_text()
