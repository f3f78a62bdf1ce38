"""Whether somebody has seen the commands that are about to run, and that nothing runs otherwise."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hives import git

import queenbee
from queenbee.checks import Check, Command, Consent, ContentMatch, FileExists, Pattern, Script
from queenbee.checks.consent import GATE, VERIFIER, proposals
from queenbee.errors import Untrusted
from queenbee.store.trust import HOOK, Proposal

PACKAGE = Path(queenbee.__file__).parent
RUN = Check("Tests", Command("make test"))


class Person:
    """Somebody who is asked, and says the same each time."""

    def __init__(self, *, agrees: bool) -> None:
        self.agrees = agrees
        self.shown: list[list[str]] = []

    def __call__(self, asked: Sequence[Proposal]) -> bool:
        self.shown.append([each.text for each in asked])
        return self.agrees


@pytest.fixture
def consent(repo: Path, asking: Path) -> Consent:
    return Consent.at(str(repo))


def test_without_a_person_it_is_refused_with_all_that_it_would_run(consent: Consent) -> None:
    more = [Check(str(number), Command(f"echo {number}")) for number in range(9)]
    with pytest.raises(Untrusted) as refused:
        consent.checks(VERIFIER, "gt-1", [RUN, *more])
    assert "make test" in refused.value.message
    assert "gt-1" in refused.value.message
    assert "queen config trust" in str(refused.value.hint)
    assert len(refused.value.details["commands"]) == 10  # type: ignore[arg-type]
    assert refused.value.details["commands"][0] == {  # type: ignore[index]
        "kind": "verifier", "from": "gt-1", "text": "make test", "more": [],
    }  # fmt: skip


def test_a_person_is_asked_once_and_each_command_is_shown_once(consent: Consent) -> None:
    person = Person(agrees=True)
    for issue_id in ("gt-1", "gt-2"):
        asked = replace(consent, ask=person)
        assert asked.checks(VERIFIER, issue_id, [RUN, RUN]) == [RUN, RUN]
    assert person.shown == [["make test"]]


def test_a_person_who_says_no_is_asked_again(consent: Consent) -> None:
    person = Person(agrees=False)
    for _ in range(2):
        with pytest.raises(Untrusted):
            replace(consent, ask=person).checks(VERIFIER, "gt-1", [RUN])
    assert len(person.shown) == 2


def test_what_is_swapped_while_the_question_waits_is_asked_for_too(
    consent: Consent, tmp_path: Path
) -> None:
    script, shown = tmp_path / "script", list[str]()
    script.write_text("echo good")

    def ask(asked: Sequence[Proposal]) -> bool:
        shown.extend(each.text for each in asked)
        script.write_text("echo bad")
        return True

    replace(consent, ask=ask).require_still(lambda: [Proposal(HOOK, script.read_text())])
    assert shown == ["echo good", "echo bad"]


@pytest.mark.parametrize(
    "changed",
    [
        replace(RUN, what=Command("make test", "bash")),
        replace(RUN, what=Script("make", ("test",))),
        replace(RUN, cwd="docs"),
        replace(RUN, environment={"PATH": "."}),
        replace(RUN, environment={"TOKEN": None}),
    ],
)
def test_all_that_decides_what_runs_counts(consent: Consent, changed: Check) -> None:
    replace(consent, ask=Person(agrees=True)).checks(VERIFIER, "gt-1", [RUN])
    with pytest.raises(Untrusted):
        consent.checks(VERIFIER, "gt-1", [changed])


def test_what_does_not_decide_what_runs_does_not_count(consent: Consent) -> None:
    replace(consent, ask=Person(agrees=True)).checks(VERIFIER, "gt-1", [RUN])
    assert consent.checks(VERIFIER, "gt-2", [replace(RUN, name="Other", timeout_s=5)])


def test_a_look_at_a_file_needs_nobody(consent: Consent) -> None:
    looks = [FileExists("a"), ContentMatch("a", (Pattern("x"),))]
    assert consent.checks(VERIFIER, "gt-1", [Check("look", each) for each in looks])


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../private", "link", "folder/private", ".git/HEAD"]
)
def test_a_look_out_of_the_repository_is_shown_with_where_it_leads(
    consent: Consent, repo: Path, path: str
) -> None:
    """What matches is written into the gate, which is committed."""
    (repo / "link").symlink_to("../private")
    (repo / "folder").symlink_to("..")
    person = Person(agrees=True)
    for what in (FileExists(path), ContentMatch(path, (Pattern("x"),))):
        look = [Check("look", what)]
        with pytest.raises(Untrusted, match=path):
            consent.checks(GATE, "wf/one", look)
        assert replace(consent, ask=person).checks(GATE, "wf/one", look)
        assert consent.checks(GATE, "wf/one", look)
    assert person.shown == [[f"a file exists at {path}"], [f"{path} contains 'x'"]]
    if path == "link":
        (repo / "link").unlink()
        (repo / "link").symlink_to("../other")
        with pytest.raises(Untrusted):
            consent.checks(GATE, "wf/one", look)


def test_a_look_at_another_worktree_of_the_repository_needs_nobody(
    repo: Path, asking: Path
) -> None:
    """Gates name files by absolute paths, and agents run them in worktrees of their own."""
    git(repo, "worktree", "add", "-q", "../other")
    look = Check("look", FileExists(str(repo / "a")))
    assert Consent.at(str(repo.parent / "other")).checks(GATE, "wf/one", [look])


def test_nothing_of_a_command_is_left_out(consent: Consent) -> None:
    long = f"true {'x' * 5000}; id"
    check = replace(RUN, what=Command(long), environment={"A": long})
    found = proposals(Consent.at(".").trust.layout, VERIFIER, "gt-1", [check])
    assert found == [Proposal(VERIFIER, long, (f"with A={long}",), "gt-1")]


class TestOnlyConsentLetsRun:
    """By type: mypy refuses a check that did not come from it."""

    def test_a_seen_check_or_command_is_made_here_alone(self) -> None:
        assert {file for name, file in _calls() if name in ("SeenCheck", "SeenCommand")} == {
            "checks/consent.py"
        }

    def test_processes_of_checks_are_started_in_known_places(self) -> None:
        assert {file for name, file in _calls() if name == "run_checks"} == {"checks/runner.py"}
        assert {file for name, file in _calls() if name == "run_process"} == {
            "checks/executing.py",
            "git/landing/commands.py",  # Git alone.
            "git/landing/together/checked.py",
            "git/hosts/client.py",  # The user's own gh, glab or tea.
            "git/worktrees/preparing.py",
        }

    def test_what_was_typed_for_this_run_is_claimed_in_known_places(self) -> None:
        assert {file for name, file in _calls() if name in ("typed", "typed_command")} == {
            "documents/ralph/bead_loop.py",
            "git/landing/leading.py",
            "git/worktrees/preparing.py",
        }


@cache
def _calls() -> set[tuple[str, str]]:
    """Returns which functions each module of the package calls by their names."""
    return {
        (node.func.id, path.relative_to(PACKAGE).as_posix())
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
