"""Taking back what the last command wrote: by new lines, all of it or nothing, on nobody's cost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from acting import answer, command
from hives import Clock, Queen, QuickQueen, at_a_terminal, records, write_lines

from queenbee import Hive
from queenbee.errors import Conflict, Held, IssueClosed, NotFound, NotReady, NotYours, Taken

pytestmark = pytest.mark.both_engines

Opener = Callable[[str], Hive]


@pytest.fixture(autouse=True)
def tracker(beads: Path) -> None:
    rows = [{"id": f"qb-{n}", "title": f"Issue {n}", "status": "open"} for n in (1, 2, 3)]
    write_lines(beads / "issues.jsonl", *rows)


def holder(hive: Hive, issue_id: str) -> str | None:
    found = hive.assignments.active(issue_id)
    return found.droid if found is not None else None


def leased(hive: Hive) -> list[tuple[str, str]]:
    return [(lease.droid, lease.pattern) for lease in hive.reservations.find()]


def sentences(hive: Hive) -> list[str]:
    return [str(each) for each in hive.undo().reversals]


class TestClaims:
    def test_claim_is_given_back_with_what_was_reserved_for_it(self, hive: Hive) -> None:
        hive.assignments.claim("qb-1")
        hive.reservations.reserve(["src/**"], issue_id="qb-1")
        hive.undo()
        assert hive.status().given_back == {}
        hive.undo()
        assert leased(hive) == [("ui-engineer", "src/**")]
        with hive.one_step("queen next"):
            hive.assignments.claim("qb-2")
            hive.reservations.reserve(["docs/**"], issue_id="qb-2")
        assert sentences(hive) == ["ui-engineer gives back qb-2", "ui-engineer gives back docs/**"]
        assert (holder(hive, "qb-1"), holder(hive, "qb-2")) == ("ui-engineer", None)
        assert leased(hive) == [("ui-engineer", "src/**")]

    def test_leases_for_a_claim_end_with_it_whichever_command_made_them(self, hive: Hive) -> None:
        hive.assignments.claim("qb-1")
        key = Path(hive.layout.state_dir, "last", "ui-engineer")
        of_claim = key.read_bytes()
        hive.reservations.reserve(["src/**"])
        key.write_bytes(of_claim)
        assert sentences(hive) == ["ui-engineer gives back qb-1", "ui-engineer gives back src/**"]
        assert leased(hive) == []

    def test_what_was_released_is_claimed_and_leased_until_the_same_time(
        self, hive: Hive, clock: Clock
    ) -> None:
        hive.assignments.claim("qb-1")
        [before] = hive.reservations.reserve(["src/**"], ttl_s=7200, reason="forms")
        clock.advance(60)
        hive.assignments.release("qb-1")
        assert leased(hive) == []
        clock.advance(60)
        hive.undo()
        assert holder(hive, "qb-1") == "ui-engineer"
        [lease] = hive.reservations.find()
        assert (lease.expires_at, lease.issue_id, lease.reason, lease.exclusive) == (
            before.expires_at, "qb-1", "forms", True,
        )  # fmt: skip

    def test_an_expired_lease_does_not_begin_again(self, hive: Hive, clock: Clock) -> None:
        hive.assignments.claim("qb-1")
        hive.reservations.reserve(["src/**"], ttl_s=60)
        hive.assignments.release("qb-1")
        clock.advance(61)
        assert sentences(hive) == [
            "ui-engineer has qb-1 again",
            "src/** stays: released; it would have expired by now",
        ]
        assert leased(hive) == []

    @pytest.mark.parametrize("closes", ["true", "false"])
    def test_a_completed_issue_is_open_and_its_again(
        self, repo: Path, beads: Path, open_as: Opener, closes: str
    ) -> None:
        (beads / "queen.toml").write_text(f"close_on_complete = {closes}\n")
        hive = open_as("ui-engineer")
        hive.assignments.claim("qb-1")
        hive.complete("qb-1", reason="done")
        assert hive.issues.get("qb-1").done
        hive.undo()
        assert not hive.issues.get("qb-1").done
        assert holder(hive, "qb-1") == "ui-engineer"
        hive.undo()
        assert holder(hive, "qb-1") is None

    def test_one_that_is_completed_again_is_done_once(self, hive: Hive) -> None:
        hive.assignments.claim("qb-1")
        hive.complete("qb-1")
        hive.undo()
        hive.complete("qb-1")
        assert [each.issue_id for each in hive.status().done] == ["qb-1"]

    def test_one_that_was_moved_goes_back_to_who_had_it(
        self, hive: Hive, reviewer: Hive, open_as: Opener
    ) -> None:
        reviewer.assignments.claim("qb-1")
        hive.assignments.assign("qb-1", "writer", reassign=True, reason="busy")
        hive.undo()
        assert holder(hive, "qb-1") == "reviewer"
        told = [each.subject for each in open_as("writer").messages.inbox()]
        assert "[qb-1] Taken back" in told
        assert "[qb-1] Given back to you" in [x.subject for x in reviewer.messages.inbox()]

    def test_it_is_refused_once_somebody_else_has_it(self, hive: Hive, reviewer: Hive) -> None:
        hive.assignments.claim("qb-1")
        hive.reservations.reserve(["src/**"])
        hive.assignments.release("qb-1")
        reviewer.reservations.reserve(["src/a.py"])
        with pytest.raises(Held):
            hive.undo()
        assert holder(hive, "qb-1") is None
        reviewer.assignments.claim("qb-1")
        with pytest.raises(Conflict, match="qb-1 has changed hands since: reviewer has it now"):
            hive.undo()
        assert holder(hive, "qb-1") == "reviewer"

    def test_it_is_refused_if_somebody_else_had_it_since(
        self, hive: Hive, reviewer: Hive, clock: Clock
    ) -> None:
        hive.assignments.claim("qb-1")
        hive.assignments.release("qb-1")
        clock.advance(1)
        reviewer.assignments.claim("qb-1")
        reviewer.assignments.release("qb-1")
        with pytest.raises(Conflict, match=r"changed hands since: reviewer had it \(released\)"):
            hive.undo()
        reviewer.assignments.claim("qb-1")
        reviewer.complete("qb-1")
        with pytest.raises(Conflict, match=r"changed hands since: reviewer had it \(completed\)"):
            hive.undo()
        assert holder(hive, "qb-1") is None

    def test_what_was_released_is_claimed_by_the_rules_of_a_claim(
        self, hive: Hive, reviewer: Hive
    ) -> None:
        hive.assignments.claim("qb-1")
        hive.assignments.release("qb-1")
        reviewer.issues.edit("qb-1", status="deferred")
        with pytest.raises(NotReady, match="qb-1 cannot be started: it is deferred"):
            hive.undo()
        reviewer.issues.close("qb-1")
        with pytest.raises(IssueClosed, match="qb-1 is closed"):
            hive.undo(dry_run=True)
        reviewer.issues.reopen("qb-1")
        hive.undo()
        assert holder(hive, "qb-1") == "ui-engineer"

    def test_a_completed_one_that_was_put_on_hold_since_stays_done(
        self, beads: Path, open_as: Opener
    ) -> None:
        (beads / "queen.toml").write_text("close_on_complete = false\n")
        hive = open_as("ui-engineer")
        hive.assignments.claim("qb-1")
        hive.complete("qb-1")
        rows = [{"id": "qb-1", "title": "Issue 1", "status": "deferred"}]
        write_lines(beads / "issues.jsonl", *rows)
        with pytest.raises(Conflict, match="qb-1 has changed since: it is deferred"):
            hive.undo()
        assert holder(hive, "qb-1") is None

    def test_it_does_not_overtake_who_waits(self, hive: Hive, reviewer: Hive) -> None:
        from queenbee.core.queue import Want

        hive.assignments.claim("qb-1")
        hive.assignments.release("qb-1")
        with reviewer.queue.place(Want(issue_id="qb-1"), 60) as place:
            place.take()
            with pytest.raises(Taken, match="reviewer has waited for it"):
                hive.undo()

    def test_work_that_has_landed_is_reverted_in_git(self, hive: Hive) -> None:
        hive.assignments.claim("qb-1")
        hive.assignments.complete("qb-1", landed="c0ffee" * 6 + "c0ff")
        with pytest.raises(Conflict, match="qb-1 has landed, as c0ffeec0ff") as refused:
            hive.undo()
        hint = str(refused.value.hint)
        assert hint.startswith("git diff-tree -p --binary c0ffeec0ff c0ffeec0ff~ -- ':/!.beads' | ")
        assert hint.endswith(" && queen issue reopen qb-1")

    def test_a_reservation_of_another_that_was_taken_over_stays_ended(
        self, hive: Hive, reviewer: Hive
    ) -> None:
        reviewer.reservations.reserve(["src/**"])
        hive.reservations.reserve(["src/a.py"], force=True, reason="urgent")
        assert sentences(hive) == [
            "ui-engineer gives back src/a.py",
            "src/** stays: released; reviewer can reserve it again",
        ]
        assert leased(hive) == []


class TestIssues:
    def test_changed_fields_are_as_they_were(self, hive: Hive) -> None:
        hive.issues.edit("qb-1", title="Other", priority=0, add_labels=["web"])
        hive.undo()
        issue = hive.issues.get("qb-1")
        assert (issue.title, issue.priority, issue.get("labels")) == ("Issue 1", 2, None)

    def test_fields_that_others_changed_since_are_not_touched(
        self, hive: Hive, reviewer: Hive
    ) -> None:
        hive.issues.edit("qb-1", priority=3)
        hive.issues.edit("qb-1", title="Other")
        reviewer.issues.edit("qb-1", priority=0)
        hive.undo()
        assert hive.issues.get("qb-1").title == "Issue 1"
        assert hive.issues.get("qb-1").priority == 0
        hive.issues.edit("qb-1", title="Other")
        reviewer.issues.edit("qb-1", title="A third one")
        with pytest.raises(Conflict, match="qb-1 has changed since: title"):
            hive.undo()

    def test_a_whole_import_goes_unless_somebody_has_an_issue_of_it(
        self, hive: Hive, reviewer: Hive
    ) -> None:
        before = {*hive.issues.ids()}
        made = hive.issues.import_(b"key,title\nA-1,One\nA-2,Two\n", name="a.csv")
        first, second = made.ids.values()
        reviewer.assignments.claim(first)
        with pytest.raises(Conflict, match=f"reviewer has {first} by now"):
            hive.undo()
        hive.issues.import_(b"key,title\nA-1,One\nA-2,Renamed\nA-3,Three\n", name="a.csv")
        assert hive.issues.get(second).title == "Renamed"
        hive.undo()
        assert {*hive.issues.ids()} == {*before, first, second}
        assert hive.issues.get(second).title == "Two"

    def test_an_issue_that_another_refers_to_stays(self, hive: Hive, reviewer: Hive) -> None:
        made = hive.issues.new("Base")
        reviewer.issues.depend("qb-1", made)
        with pytest.raises(Conflict, match=f"qb-1 refers to {made} by now"):
            hive.undo()

    def test_several_deleted_ones_come_back_together(self, hive: Hive) -> None:
        hive.issues.delete("qb-1", "qb-2", reason="twice")
        assert [each.id for each in hive.issues.deleted()] == ["qb-1", "qb-2"]
        hive.undo()
        assert {*hive.issues.ids()} == {"qb-1", "qb-2", "qb-3"}
        assert "delete_reason" not in hive.issues.get("qb-1").fields

    def test_one_deleted_long_ago_is_opened_again(self, hive: Hive, clock: Clock) -> None:
        hive.issues.delete("qb-1")
        clock.advance(1)
        hive.issues.delete("qb-2")
        assert [row["id"] for row in answer(hive, "issues", "--deleted")] == ["qb-2", "qb-1"]
        refused = command(hive, "claim", "qb-1").err
        assert "to have it again: queen issue reopen qb-1" in refused
        answer(hive, "issue", "reopen", "qb-1")
        assert hive.issues.get("qb-1").title == "Issue 1"
        assert hive.assignments.claim("qb-1").droid == "ui-engineer"


class TestMessagesAndSettings:
    def test_a_message_goes_unless_somebody_has_read_it(self, hive: Hive, reviewer: Hive) -> None:
        hive.messages.send("reviewer", "hello")
        hive.undo()
        assert reviewer.messages.inbox() == []
        hive.undo()
        assert [each.body for each in reviewer.messages.inbox()] == ["hello"]
        hive.messages.send("reviewer", "once more")
        reviewer.messages.read_unread()
        with pytest.raises(Conflict, match="reviewer has read the message about 'once more'"):
            hive.undo()

    def test_the_question_of_an_answer_is_open_again(self, hive: Hive, reviewer: Hive) -> None:
        [asked] = reviewer.messages.send("ui-engineer", "which port?", ack_within_s=60)
        hive.messages.answer(asked.id, "wrong", as_person=False)
        opened = ["the message to reviewer is deleted", "the question of reviewer is unread again"]
        assert [str(each) for each in hive.undo(dry_run=True).reversals] == opened
        assert hive.messages.inbox(unread=True) == []
        assert sentences(hive) == opened
        assert [each.wants_answer for each in hive.messages.inbox(unread=True)] == [True]
        assert sentences(hive)[-1] == "the question of reviewer is answered again"
        (again,) = hive.messages.inbox()
        assert again.read
        assert again.acked_at

    def test_a_question_that_was_read_before_stays_read(
        self, hive: Hive, reviewer: Hive, clock: Clock
    ) -> None:
        [asked] = reviewer.messages.send("ui-engineer", "which port?", ack_within_s=60)
        hive.messages.mark_read([asked.id])
        clock.advance(1)
        hive.messages.answer(asked.id, "wrong", as_person=False)
        assert sentences(hive)[-1] == "the question of reviewer is unanswered again"
        (still,) = hive.messages.inbox()
        assert still.read
        assert still.wants_answer
        hive.messages.reply(asked.id, "a reply marks nothing")
        assert len(sentences(hive)) == 1

    def test_a_setting_is_what_it_was(self, hive: Hive, reviewer: Hive) -> None:
        answer(hive, "config", "set", "land.check", "make test")
        answer(hive, "config", "set", "land.check", "make all")
        assert [str(each) for each in hive.undo().reversals] == ['land.check is "make test" again']
        answer(hive, "config", "unset", "land.check")
        assert answer(hive, "undo")["reversals"][0]["subject"] == "land.check"
        assert answer(hive, "config", "get", "land.check")["value"] == "make test"
        answer(reviewer, "config", "set", "land.check", "true")
        with pytest.raises(Conflict, match=r"land\.check has changed since"):
            hive.undo()


def test_a_command_that_is_put_back_was_not_typed(quick: QuickQueen, asking: Path) -> None:
    settings = Path(quick.cwd, ".beads", "queen.toml")
    settings.write_text('[land]\ncheck = "touch pwned"\n')  # As a clone brings it.
    assert quick("config", "set", "land.check", "true").code == 0
    assert quick("undo", "--yes").code == 0
    assert quick("config", "get", "land.check", "--json").json["value"] == "touch pwned"
    seen = quick("config", "trust", "--list", "--json").json["seen"]
    assert [each["text"] for each in seen if each["kind"] == "check"] == ["true"]


def test_no_other_file_is_changed_for_a_planted_step(
    quick: QuickQueen, repo: Path, tmp_path: Path
) -> None:
    assert quick("config", "set", "land.check", "true", as_="ui").code == 0
    (step,) = Path(repo, ".git", "queenbee", "last").glob("ui*")
    other = tmp_path / "queen.toml"
    other.write_text('[land]\ncheck = "true"\n')
    said = json.loads(step.read_text())
    said["settings"]["land.check"] = [str(other), "evil", "true"]
    step.write_text(json.dumps(said))
    refused = quick("undo", "--yes", as_="ui")
    assert (refused.code, "has no settings of this hive" in refused.err) == (5, True)
    assert "evil" not in other.read_text()


WHOLE = {"key": "k", "command": "x", "at_ms": 3}


@pytest.mark.parametrize(
    "said",
    [
        [],
        {**WHOLE, "key": 1},
        {**WHOLE, "at_ms": "a"},
        {**WHOLE, "at_ms": float("inf")},
        {**WHOLE, "lines": [1]},
        {**WHOLE, "lines": {"nokind": {"qb-1": [1, 1, []]}}},
        {**WHOLE, "lines": {"issues": {"qb-1": [1]}}},
        {**WHOLE, "lines": {"issues": {"qb-1": [1, 1, "id"]}}},
        {**WHOLE, "lines": {"assignments": {"x": ["a", [], {}]}}},
        {**WHOLE, "settings": {"land.check": 1}},
        {**WHOLE, "settings": {"land.check": [1, None, None]}},
    ],
)
def test_a_step_that_is_damaged_is_none(quick: QuickQueen, repo: Path, said: object) -> None:
    assert quick("reserve", "a", as_="ui").code == 0
    Path(repo, ".git", "queenbee", "last", "ui").write_text(json.dumps(said))
    refused = quick("undo", as_="ui")
    assert (refused.code, "nothing is known here" in refused.err) == (4, True), refused


@pytest.mark.parametrize("names", [["title"], ["id", "title"]])
def test_a_planted_step_takes_back_nothing_that_another_wrote(
    hive: Hive, reviewer: Hive, names: list[str]
) -> None:
    reviewer.issues.new("Other", issue_id="qb-9")
    hive.issues.new("Own", issue_id="qb-8")
    lease = reviewer.reservations.reserve(["a"])[0]
    hive.issues.edit("qb-1", title="Mine")
    key = Path(hive.layout.state_dir, "last", "ui-engineer")
    said = json.loads(key.read_bytes())
    for lines in (
        {"issues": {"qb-9": [1, 1, names]}},
        {"reservations": {lease.id: [1, 1, []]}},
        {"issues": {"qb-1": [7, 7, ["title"]]}},
        {"issues": {"qb-8": [1, 1, ["title"]]}},  # What was there before it changed that.
    ):
        key.write_text(json.dumps({**said, "lines": lines}))
        with pytest.raises(Conflict, match="nothing says that ui-engineer wrote"):
            hive.undo()
    assert reviewer.issues.get("qb-9").title == "Other"
    assert leased(hive) == [("reviewer", "a")]


def test_a_person_takes_back_nothing_for_a_step_that_an_agent_could_write(
    quick: QuickQueen, repo: Path
) -> None:
    assert quick("issue", "new", "Mine", "--id", "qb-9").code == 0
    private, state = (Path(repo, ".git", each, "last") for each in ("queenbee-private", "queenbee"))
    state.mkdir(exist_ok=True)
    (private / "human").rename(state / "human")
    assert "nothing is known here" in quick("undo").err
    (state / "human").rename(private / "human")
    assert quick("undo").code == 0


class TestAnAgent:
    @pytest.fixture
    def known_as(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
        """Has this process be an agent's from now on, with a name in its environment."""

        def known(name: str) -> None:
            monkeypatch.setenv("CLAUDECODE", "1")
            monkeypatch.setenv("QUEEN_DROID", name)

        return known

    @pytest.mark.parametrize("name", ["human", "queen", None])
    def test_takes_back_nothing_of_a_person(
        self, open_as: Opener, known_as: Callable[[str], None], name: str | None
    ) -> None:
        person = open_as(name)  # type: ignore[arg-type]
        person.issues.edit("qb-1", title="Other")
        known_as(name or "")
        with pytest.raises(NotYours, match="an agent takes back only its own last command"):
            person.undo()
        assert person.issues.get("qb-1").title == "Other"

    def test_takes_back_only_what_it_wrote_under_its_own_name(
        self, hive: Hive, reviewer: Hive, known_as: Callable[[str], None]
    ) -> None:
        hive.assignments.claim("qb-1")
        reviewer.assignments.claim("qb-2")
        known_as("reviewer")
        with pytest.raises(NotYours, match="not that of ui-engineer"):
            hive.undo()
        reviewer.undo()
        assert (holder(hive, "qb-1"), holder(hive, "qb-2")) == ("ui-engineer", None)

    def test_takes_back_what_its_subagent_did(
        self, open_as: Opener, known_as: Callable[[str], None]
    ) -> None:
        subagent = open_as("reviewer.a1")
        subagent.assignments.claim("qb-1")
        known_as("reviewer")
        subagent.undo()
        assert holder(subagent, "qb-1") is None

    def test_takes_back_no_setting(self, hive: Hive, known_as: Callable[[str], None]) -> None:
        answer(hive, "config", "set", "land.check", "make test")
        known_as("ui-engineer")
        with pytest.raises(NotYours, match=r"no agent takes back a setting: land\.check"):
            hive.undo()
        assert answer(hive, "config", "get", "land.check")["value"] == "make test"


class TestSteps:
    def test_nothing_is_removed_and_another_undo_takes_it_back(
        self, hive: Hive, beads: Path, engine: str
    ) -> None:
        hive.assignments.claim("qb-1")
        hive.undo()
        hive.undo()
        assert holder(hive, "qb-1") == "ui-engineer"
        if engine == "files":
            lines = records(beads / "queen_assignments.jsonl")
            assert [each["status"] for each in lines] == ["active", "released", "active"]

    def test_a_dry_run_says_what_follows_and_writes_nothing(self, hive: Hive) -> None:
        hive.assignments.claim("qb-1")
        cursor = hive.cursor()
        planned = answer(hive, "undo", "--dry-run")
        assert planned["reversals"] == [
            {"action": "release", "kind": "assignments", "subject": "qb-1",
             "droid": "ui-engineer", "detail": None}
        ]  # fmt: skip
        assert hive.cursor() == cursor
        assert holder(hive, "qb-1") == "ui-engineer"

    def test_each_droid_takes_back_its_own(self, hive: Hive, reviewer: Hive) -> None:
        hive.assignments.claim("qb-1")
        reviewer.assignments.claim("qb-2")
        hive.undo()
        assert (holder(hive, "qb-1"), holder(hive, "qb-2")) == (None, "reviewer")

    def test_reading_mail_is_no_step(self, hive: Hive, reviewer: Hive) -> None:
        reviewer.messages.send("ui-engineer", "hello")
        hive.assignments.claim("qb-1")
        hive.messages.read_unread()
        assert sentences(hive) == ["ui-engineer gives back qb-1"]

    def test_without_a_step_or_with_nothing_left_of_it_it_is_refused(
        self, hive: Hive, clock: Clock
    ) -> None:
        with pytest.raises(NotFound, match="nothing is known here that ui-engineer wrote"):
            hive.undo()
        hive.reservations.reserve(["src/**"], ttl_s=60)
        clock.advance(61)
        with pytest.raises(NotFound, match="nothing of the last change is left"):
            hive.undo()

    def test_a_command_of_several_writes_is_one_step(self, quick: QuickQueen, hive: Hive) -> None:
        quick("claim", "qb-1", as_="ui-engineer")
        assert quick("complete", "--next", as_="ui-engineer").code == 0
        assert holder(hive, "qb-2") == "ui-engineer"
        assert quick("undo", as_="ui-engineer").code == 0
        assert (holder(hive, "qb-1"), holder(hive, "qb-2")) == ("ui-engineer", None)


def test_a_second_one_says_what_an_issue_is_now(hive: Hive) -> None:
    hive.issues.edit("qb-1", title="Other", add_labels=["a", "b"])
    assert sentences(hive) == ["qb-1 is again as before: title “Issue 1”, no labels"]
    done = hive.undo()
    assert [str(each) for each in done.reversals] == [
        "qb-1 is again as before: title “Other”, labels “a, b”"
    ]
    assert "function" not in repr(done)
    hive.issues.depend("qb-1", "qb-2")
    hive.undo()
    assert sentences(hive) == ["qb-1 is again as before: dependencies"]


@pytest.mark.slow
def test_a_person_at_a_terminal_is_shown_what_follows_and_asked(queen: Queen, hive: Hive) -> None:
    assert queen("issue", "edit", "qb-1", "--title", "Other").code == 0
    code, out = at_a_terminal(queen, "n\n", "undo")
    assert "qb-1 is again as before: title “Issue 1”" in out
    assert code != 0
    assert hive.issues.get("qb-1").title == "Other"
    code, out = at_a_terminal(queen, "y\n", "undo")
    assert code == 0, out
    assert hive.issues.get("qb-1").title == "Issue 1"
