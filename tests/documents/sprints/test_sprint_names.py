"""Names and numbers of sprints: the document's examples, and the edges of its rules."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queenbee.documents.sprints import numbers
from queenbee.documents.sprints.numbers import is_phase, is_sprint, parse_sprint, sort_sprints
from queenbee.documents.sprints.sprint_bead import group_by_team, is_sprint_bead


class TestNumbers:
    @pytest.mark.parametrize("phase", ["1", "2", "3a", "3b", "12", "3ab"])
    def test_is_a_phase_of_the_document(self, phase: str) -> None:
        assert is_phase(phase)

    @pytest.mark.parametrize("phase", ["1.2", "a1", "1-2", "1A", "", "1\n", " 1", "١", "1é"])
    def test_is_not_a_phase(self, phase: str) -> None:
        assert not is_phase(phase)

    @pytest.mark.parametrize("sprint", ["1.1", "3a.2", "3b.2a", "3b.2b", "12.5c"])
    def test_is_a_sprint_of_the_document(self, sprint: str) -> None:
        assert is_sprint(sprint)

    @pytest.mark.parametrize("sprint", ["1", "1-2", "1.2.3", "a.1", "1.a", "1.2A", "1.1\n", ""])
    def test_is_not_a_sprint(self, sprint: str) -> None:
        assert not is_sprint(sprint)

    def test_numbers_sort_as_numbers(self) -> None:
        plan = ["10.1", "2.1", "1.10", "1.2b", "1.2a", "1.2", "3ab.1", "3b.1", "3a.1"]

        assert sort_sprints(plan) == [
            "1.2", "1.2a", "1.2b", "1.10", "2.1", "3a.1", "3ab.1", "3b.1", "10.1",
        ]  # fmt: skip

    def test_leading_zeros_do_not_count(self) -> None:
        assert parse_sprint("01.002a") == parse_sprint("1.2a")

    def test_numbers_of_any_length_are_read(self) -> None:
        assert parse_sprint(f"{'9' * 9_000}.1") > parse_sprint("8.1")

    def test_a_non_number_is_refused(self) -> None:
        with pytest.raises(ValueError, match="not a sprint number"):
            parse_sprint("1")


class TestBranches:
    @pytest.mark.parametrize(
        ("sprint", "title", "branch"),
        [
            ("1.1", "Project Setup", "main/1-1-project-setup"),
            ("3a.2b", "API Validation", "main/3a-2b-api-validation"),
            ("1.2", "User Authentication", "main/1-2-user-authentication"),
            (
                "1.2",
                "Test & Validation (with punctuation)",
                "main/1-2-test-validation-with-punctuation",
            ),
            ("1.2", "  Many   spaces ", "main/1-2-many-spaces"),
            ("1.2", "Prüfung für Élan", "main/1-2-prufung-fur-elan"),
            ("1.2", "日本語", "main/1-2"),
            ("1.2", "snake_case - kept", "main/1-2-snake_case-kept"),
            ("1.2", "../../etc/passwd", "main/1-2-etcpasswd"),
        ],
    )
    def test_is_named_by_the_documents_rules(self, sprint: str, title: str, branch: str) -> None:
        assert numbers.branch_name("main", sprint, title) == branch

    @settings(deadline=None)
    @given(st.text(max_size=300))
    def test_every_title_makes_a_branch(self, title: str) -> None:
        branch = numbers.branch_name("main", "1.2", title)

        assert numbers.branch_fault(branch) is None
        assert len(branch) <= 100

    @pytest.mark.parametrize("branch", ["main/1-2-auth", "develop/3a-2b-api", "x", "A_b-C/9"])
    def test_is_a_branch(self, branch: str) -> None:
        assert numbers.branch_fault(branch) is None

    @pytest.mark.parametrize(
        "branch", ["", "main/1.2", "a b", "a\n", "/a", "a/", "a//b", "-a", "é"]
    )
    def test_is_not_a_branch(self, branch: str) -> None:
        assert numbers.branch_fault(branch)


class TestPlaces:
    @pytest.mark.parametrize("path", ["/a", "C:\\a", "d:/a", "\\\\host\\share"])
    def test_is_absolute(self, path: str) -> None:
        assert numbers.is_absolute(path)

    @pytest.mark.parametrize("path", ["a", "./a", "~/a", "C:a", "", "/a\0"])
    def test_is_not_absolute(self, path: str) -> None:
        assert not numbers.is_absolute(path)

    @pytest.mark.parametrize(
        ("sprint", "labels"),
        [
            ("1.2", ["phase-01", "sprint-1-2"]),
            ("3a.2b", ["phase-03a", "sprint-3a-2b"]),
            ("12.5c", ["phase-12", "sprint-12-5c"]),
        ],
    )
    def test_labels_are_those_of_the_documents_beads(self, sprint: str, labels: list[str]) -> None:
        assert numbers.labels(sprint) == labels


class TestTeams:
    def bead(self, identifier: str, sprint: str, team: str | None = None) -> dict[str, object]:
        metadata: dict[str, object] = {"sprint": sprint}
        if team is not None:
            metadata["team_name"] = team
        return {"id": identifier, "issue_type": "beads-ralph-work", "metadata": metadata}

    def test_a_bead_of_a_session_comes_after_the_sprints(self) -> None:
        task = {"id": "bd-0", "metadata": {"team_name": "x"}}

        assert list(group_by_team([task, self.bead("bd-1", "1.2", "a")])) == ["a", "x"]

    def test_a_sprint_bead_is_known_by_its_type_or_its_sprint(self) -> None:
        assert is_sprint_bead({"issue_type": "beads-ralph-merge"})
        assert is_sprint_bead({"issue_type": "task", "metadata": {"sprint": "1.1"}})
        assert not is_sprint_bead({"issue_type": "task", "metadata": {}})
        assert not is_sprint_bead({"issue_type": "task", "metadata": "sprint"})
