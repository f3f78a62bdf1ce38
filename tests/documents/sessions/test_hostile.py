"""Team sessions that mean harm: bombs, links, pipes, names that leave the folder, noise."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from session_folders import errors, example_session, in_session, in_spec, role_spec, team_session

from queenbee.documents.front_matter import read_front_matter
from queenbee.documents.sessions.folder import File, SessionFolder
from queenbee.documents.sessions.roles import name_fault, role_spec_findings
from queenbee.documents.sessions.session import read_session, session_findings
from queenbee.errors import Unreadable


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """The document's example of a valid session, on disk."""
    return example_session(tmp_path)


class TestHostile:
    def test_a_bomb_of_aliases_is_refused_before_it_goes_off(self, session: Path) -> None:
        bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n"
        for last, name in zip("abcdefgh", "bcdefghi", strict=True):
            bomb += f"{name}: &{name} [{', '.join([f'*{last}'] * 9)}]\n"
        in_spec("role: tester\n", f"role: tester\n{bomb}")(session)

        (message,) = errors(session)

        assert message.startswith("Invalid role-spec: role-specs/tester.md missing frontmatter")
        assert message.endswith("it has more than 8 aliases")

    @pytest.mark.parametrize(
        ("matter", "reason"),
        [
            ("a: " + "[" * 1_000, "levels of nesting"),
            ("a: " + "{b: " * 1_000, "levels of nesting"),
            ("".join(f"k{n}: &a{n} 1\n" for n in range(20)), "more than 8 aliases"),
            ("a: &x 1\nb: &x 2", "defined twice"),
            ("a: " + "x" * 70_000, "more than 65,536 bytes"),
            ("".join(f"k{n}: v\n" for n in range(5_000)), "more than 4,000 parts"),
            ("a: 2026-13-45", "cannot be read"),
            ("a: " + "9" * 5_000, "cannot be read"),
            ("a: !!python/name:os.system", "not YAML"),
            ("a: !!int ''", "cannot be read"),
            ("a: !!bool maybe", "cannot be read"),
            ("? {a: b}\n: c", "not YAML"),
            ("a: *nobody", "not YAML"),
        ],
    )
    def test_front_matter_that_would_hurt_is_refused(self, matter: str, reason: str) -> None:
        front = read_front_matter(f"---\n{matter}\n---\n")

        assert front.fields is None
        assert reason in str(front.problem)

    def test_a_role_spec_that_is_a_link_out_of_the_session_is_not_read(
        self, session: Path, tmp_path: Path
    ) -> None:
        secret = tmp_path / "secret.md"
        secret.write_text(role_spec("tester"))
        spec = session / "role-specs" / "tester.md"
        spec.unlink()
        spec.symlink_to(secret)

        (message,) = errors(session)

        assert "leads outside the session's folder" in message

    def test_a_session_document_that_is_a_link_out_is_not_read(
        self, session: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "x.json").write_text(json.dumps(team_session()))
        (session / "team-session.json").unlink()
        (session / "team-session.json").symlink_to(tmp_path / "x.json")

        assert "leads outside" in errors(session)[0]

    def test_a_role_specs_folder_that_is_a_link_out_is_not_listed(
        self, session: Path, tmp_path: Path
    ) -> None:
        (session / "role-specs").rename(tmp_path / "elsewhere")
        (session / "role-specs").symlink_to(tmp_path / "elsewhere")

        assert errors(session)[0] == "Invalid session: role-specs/ directory missing"

    def test_a_pipe_in_place_of_a_file_does_not_hang(self, session: Path) -> None:
        (session / "team-session.json").unlink()
        os.mkfifo(session / "team-session.json")

        assert "is not a regular file" in errors(session)[0]

    def test_role_specs_of_any_number_are_read_up_to_a_limit(self, session: Path) -> None:
        filler = role_spec("tester") + "x" * 200_000
        for number in range(25):
            (session / "role-specs" / f"a{number}.md").write_text(filler)
        in_session(roles=team_session()["roles"])(session)

        assert "the role-specs have more than 4,194,304 bytes" in errors(session)[-1]

    @pytest.mark.slow
    @settings(max_examples=examples(150))
    @given(st.text(max_size=200))
    def test_no_front_matter_makes_it_raise(self, text: str) -> None:
        read_front_matter(f"---\n{text}\n---\n")

    @settings(max_examples=examples(100))
    @given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
    def test_no_role_spec_makes_it_raise(self, data: bytes) -> None:
        assert list(role_spec_findings("x", File(data)))

    @settings(max_examples=examples(150))
    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=4),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(
                        [
                            "roles",
                            "name",
                            "dependency_graph",
                            "depends_on",
                            "pipeline",
                            "id",
                            "status",
                        ]
                    ),
                    inner,
                    max_size=4,
                )
            ),
            max_leaves=12,
        )
    )
    def test_no_json_makes_it_raise(self, value: object) -> None:
        file = File(json.dumps(value).encode())
        folder = SessionFolder("x", team_session=file, task_analysis=file, role_specs={})

        assert session_findings(folder)
        try:
            assert read_session(folder).pipeline is not None
        except Unreadable as error:
            assert error.hint

    @settings(max_examples=examples(200))
    @given(st.text(max_size=40))
    def test_a_good_role_name_stays_in_the_folder(self, name: str) -> None:
        if name_fault(name) is None:
            path = os.path.normpath(os.path.join("/session/role-specs", f"{name}.md"))
            assert os.path.dirname(path) == "/session/role-specs"
