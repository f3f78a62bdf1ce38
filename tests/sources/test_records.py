"""QueenBee Schema Definitions"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import acting
import pytest
from hives import Clock, QuickQueen, git, records, write_lines

from queenbee import Hive
from queenbee.errors import Conflict, Held, InvalidInput, NotFound, NotYours, Taken

ULID = "[0-9A-HJKMNP-TV-Z]{26}"
SECOND_LINE = {"id": "qm-01HZ1A", "read": True, "read_at": "2024-12-14T10:36:00Z"}
MESSAGE = {
    "id": "qm-01HZ1A", "created_at": "2024-12-14T10:30:00Z", "from": "queen", "to": "ui-engineer",
    "subject": "[qb-42] Assigned: Button component", "body": "You've been assigned...",
    "issue_id": "qb-42", "importance": "normal", "read": False,
}  # fmt: skip
ASSIGNMENT = {
    "id": "qa-01HZ2A", "created_at": "2024-12-14T10:30:00Z", "updated_at": "2024-12-14T10:30:00Z",
    "issue_id": "qb-42", "droid": "ui-engineer", "assigned_by": "queen", "status": "active",
    "worktree": "feature-ui",
}  # fmt: skip
LEASE = {
    "id": "qr-01HZ3A", "created_at": "2024-12-14T10:30:00Z", "expires_at": "2024-12-14T12:30:00Z",
    "pattern": "src/components/Button/**", "droid": "ui-engineer", "issue_id": "qb-42",
    "status": "active", "exclusive": True, "reason": "Implementing Button component",
}  # fmt: skip


def lines(beads: Path, kind: str) -> list[dict[str, Any]]:
    return records(beads / f"queen_{kind}.jsonl")


class TestFileLocations:
    """File Locations"""

    def test_all_are_in_beads_and_shared_across_worktrees(
        self, hive: Hive, repo: Path, beads: Path, quick: QuickQueen
    ) -> None:
        git(repo, "worktree", "add", "-q", "../tree", "-b", "tree")
        quick("msg", "send", "reviewer", "hello", as_="ui-engineer", cwd=repo.parent / "tree")
        assert [one["body"] for one in lines(beads, "messages")] == ["hello"]


class TestMessageRecord:
    """Message Record"""

    def test_a_message_has_these_fields(self, hive: Hive, beads: Path) -> None:
        first = hive.messages.send("reviewer", "body", subject="s", issue_id="qb-1")[0]
        hive.messages.reply(first.id, "answer")
        sent, reply = lines(beads, "messages")
        for name in ("id", "created_at", "from", "to", "subject", "body", "importance", "read"):
            assert name in sent
        assert (reply["reply_to"], reply["thread_id"]) == (first.id, first.id)

    @pytest.mark.differs(
        "records have these fields",
        "they also have `rev`, and what Records lists with a +",
        "two clones that merge must agree on the state",
    )
    def test_an_update_has_the_next_revision(self, hive: Hive, reviewer: Hive, beads: Path) -> None:
        (message,) = hive.messages.send("reviewer", "body")
        reviewer.messages.mark_read([message.id])
        assert [one["rev"] for one in lines(beads, "messages")] == [1, 2]


class TestExampleMessages:
    """Example Messages"""

    def test_the_latest_record_wins_and_keeps_what_it_leaves_out(
        self, hive: Hive, beads: Path
    ) -> None:
        write_lines(beads / "queen_messages.jsonl", MESSAGE, SECOND_LINE)
        message = hive.messages.get("qm-01HZ1A")
        assert (message.read, message.subject) == (True, MESSAGE["subject"])


class TestAssignmentRecord:
    """Assignment Record"""

    def test_an_assignment_has_these_fields(self, hive: Hive, beads: Path) -> None:
        hive.assignments.claim("qb-42", worktree="feature-ui", reason="mine")
        (line,) = lines(beads, "assignments")
        assert set(ASSIGNMENT) | {"reason"} <= set(line)
        assert (line["assigned_by"], line["status"]) == ("ui-engineer", "active")


class TestAssignmentLifecycle:
    """Assignment Lifecycle"""

    @pytest.mark.parametrize("way", ["complete", "release"])
    def test_an_active_one_is_completed_or_released(
        self, hive: Hive, beads: Path, way: str
    ) -> None:
        hive.assignments.claim("qb-42")
        getattr(hive.assignments, way)("qb-42")
        assert lines(beads, "assignments")[-1]["status"] == f"{way.rstrip('e')}ed"

    def test_a_reassigned_one_makes_a_new_one(self, hive: Hive, beads: Path) -> None:
        hive.assignments.claim("qb-42")
        hive.assignments.assign("qb-42", "reviewer", reassign=True)
        _, old, new = lines(beads, "assignments")
        assert (old["status"], new["status"]) == ("reassigned", "active")
        assert new["previous_droid"] == "ui-engineer"


class TestExampleAssignments:
    """Example Assignments"""

    def test_the_second_line_completes_it(self, hive: Hive, beads: Path) -> None:
        done = {**ASSIGNMENT, "status": "completed", "updated_at": "2024-12-14T14:00:00Z"}
        write_lines(beads / "queen_assignments.jsonl", ASSIGNMENT, done)
        assert hive.assignments.active("qb-42") is None


class TestReservationRecord:
    """Reservation Record"""

    def test_a_reservation_has_these_fields(self, hive: Hive, beads: Path) -> None:
        hive.reservations.reserve(["src/**"], issue_id="qb-42", reason="why", ttl_s=7200)
        (line,) = lines(beads, "reservations")
        assert set(LEASE) <= set(line)
        hive.reservations.release(["src/**"])
        assert "released_at" in lines(beads, "reservations")[-1]


class TestReservationRules:
    """Reservation Rules"""

    def test_1_exclusive_reservations_block_exclusive_ones_on_overlapping_patterns(
        self, hive: Hive, reviewer: Hive
    ) -> None:
        hive.reservations.reserve(["src/components/**"])
        with pytest.raises(Held):
            reviewer.reservations.reserve(["src/components/Button.tsx"])

    @pytest.mark.differs(
        "exclusive reservations block exclusive ones",
        "and those that are not exclusive, both ways",
        "a refactoring waits for its readers",
    )
    @pytest.mark.parametrize("mode", ["--read", "--shared"])
    def test_1_and_others(self, quick: QuickQueen, hive: Hive, mode: str) -> None:
        assert quick("reserve", "src/**", mode, as_="reviewer").code == 0
        assert quick("reserve", "src/a", as_="ui-engineer").code == 5
        quick("reserve", "release", "--all", as_="reviewer")
        assert quick("reserve", "src/a", as_="ui-engineer").code == 0
        assert quick("reserve", "src/**", mode, as_="reviewer").code == 5

    def test_2_non_exclusive_reservations_read_only_can_coexist(
        self, quick: QuickQueen, hive: Hive, beads: Path
    ) -> None:
        for droid in ("ui-engineer", "reviewer", "tester"):
            assert quick("reserve", "src/**", "--read", as_=droid).code == 0
        found = lines(beads, "reservations")
        assert [(one["exclusive"], "tree_id" in one) for one in found] == [(False, False)] * 3

    @pytest.mark.differs(
        "a non-exclusive reservation is read-only",
        "`--read` is; `--shared` is for editing, by one droid in a working tree",
        "each would destroy what the other edits",
    )
    def test_2_what_is_shared_for_editing_is_one_droids_in_a_working_tree(
        self, quick: QuickQueen, hive: Hive
    ) -> None:
        assert quick("reserve", "src/a", "--read", as_="tester").code == 0
        assert quick("reserve", "src/a", "--shared", as_="ui-engineer").code == 0
        assert quick("reserve", "src/a", "--shared", as_="reviewer").code == 5

    def test_3_expiration_is_automatic(self, hive: Hive, reviewer: Hive, clock: Clock) -> None:
        (lease,) = hive.reservations.reserve(["src/**"], ttl_s=60)
        clock.advance(61)
        reviewer.reservations.reserve(["src/**"])
        (old, _) = hive.reservations.find(ended=True)
        assert (old.id, old.status) == (lease.id, "expired")

    def test_4_release_is_explicit(self, hive: Hive, reviewer: Hive) -> None:
        hive.reservations.reserve(["src/**"])
        assert hive.reservations.release(["src/**"])[0].released_at is not None
        reviewer.reservations.reserve(["src/**"])


class TestPatternMatching:
    """Pattern Matching"""

    @pytest.mark.parametrize(
        ("pattern", "path", "covered"),
        [
            ("src/components/Button.tsx", "src/components/Button.tsx", True),
            ("src/components/Button/**", "src/components/Button/a/b.tsx", True),
            ("src/**/*.test.ts", "src/a/b/c.test.ts", True),
            ("*.md", "README.md", True),
            ("*.md", "docs/a.md", False),
        ],
    )
    def test_its_patterns(self, quick: QuickQueen, pattern: str, path: str, covered: bool) -> None:
        assert quick("reserve", "overlap", pattern, path, "--json").json["overlap"] is covered

    @pytest.mark.differs(
        "two patterns conflict if one matches the other as a text",
        "they conflict exactly if a path could match both",
        "`src/*/a.py` and `src/b/*` have `src/b/a.py` in common",
    )
    def test_two_patterns_that_match_a_path_in_common_conflict(self, quick: QuickQueen) -> None:
        told = quick("reserve", "overlap", "src/*/a.py", "src/b/*", "--json").json
        assert told["witness"] == "src/b/a.py"


class TestExampleReservations:
    """Example Reservations"""

    def test_the_second_line_releases_it(self, hive: Hive, beads: Path, clock: Clock) -> None:
        write_lines(beads / "queen_reservations.jsonl", LEASE)
        assert [each.id for each in hive.reservations.find()] == ["qr-01HZ3A"]
        gone = {**LEASE, "status": "released", "released_at": "2024-12-14T11:45:00Z"}
        write_lines(beads / "queen_reservations.jsonl", gone)
        assert hive.reservations.find() == []


class TestIdGeneration:
    """ID Generation"""

    @pytest.mark.differs(
        "the examples' ids are shorter than a ULID, or have letters that it lacks",
        "new ids are ULIDs; any text is read as an id",
        "the examples must be readable",
    )
    def test_ids_are_a_prefix_and_a_ulid(self, hive: Hive) -> None:
        assert re.fullmatch(f"qm-{ULID}", hive.messages.send("reviewer", "x")[0].id)
        assert re.fullmatch(f"qa-{ULID}", hive.assignments.claim("qb-1").id)
        assert re.fullmatch(f"qr-{ULID}", hive.reservations.reserve(["a"])[0].id)


class TestAppendOnlySemantics:
    """Append-Only Semantics"""

    def test_an_update_appends_and_rewrites_nothing(self, hive: Hive, beads: Path) -> None:
        hive.assignments.claim("qb-1")
        before = (beads / "queen_assignments.jsonl").read_bytes()
        hive.assignments.release("qb-1")
        assert (beads / "queen_assignments.jsonl").read_bytes().startswith(before)

    @pytest.mark.differs(
        "an update appends the changed fields",
        "it appends the whole record",
        "the last line that `grep` finds is the state",
    )
    def test_an_update_has_every_field(self, hive: Hive, beads: Path) -> None:
        hive.assignments.claim("qb-1", reason="mine")
        hive.assignments.release("qb-1")
        first, last = lines(beads, "assignments")
        assert set(first) <= set(last)

    def test_delete_appends_the_same_id_with_deleted(
        self, quick: QuickQueen, hive: Hive, beads: Path
    ) -> None:
        (message,) = hive.messages.send("reviewer", "x")
        assignment, (lease,) = hive.assignments.claim("qb-1"), hive.reservations.reserve(["a"])
        hive.reservations.release(["a"])
        hive.assignments.release("qb-1")
        ids = [message.id, assignment.id, lease.id]
        assert quick("hive", "delete", *ids, as_="ui-engineer").code == 0
        for kind, identifier in zip(("messages", "assignments", "reservations"), ids, strict=True):
            last = lines(beads, kind)[-1]
            assert (last["id"], last["deleted"], last["deleted_by"]) == (
                identifier, True, "ui-engineer",
            )  # fmt: skip
        assert hive.assignments.find(status="all") == []
        assert hive.reservations.find(ended=True) == []
        assert quick("hive", "history", lease.id, "--json").json[-1]["by"] == "ui-engineer"
        before = lines(beads, "assignments")
        assert quick("hive", "delete", assignment.id, as_="ui-engineer").code == 0
        assert lines(beads, "assignments") == before

    @pytest.mark.differs(
        "any record can be deleted",
        "an assignment or a reservation only after it has ended, and by whom it concerns",
        "nothing ends without its holder being told",
    )
    def test_what_is_active_is_not_deleted(self, hive: Hive, reviewer: Hive, clock: Clock) -> None:
        assignment, (lease,) = hive.assignments.claim("qb-1"), hive.reservations.reserve(["a"])
        for identifier in (assignment.id, lease.id):
            refused = acting.command(hive, "hive", "delete", identifier, "--json").error
            assert refused["code"] == Conflict.code and "is active" in refused["message"]
        hive.assignments.release("qb-1")
        clock.advance(3 * 3600)
        for identifier in (assignment.id, lease.id):
            refused = acting.command(reviewer, "hive", "delete", identifier, "--json").error
            assert refused["code"] == NotYours.code
            (deleted,) = acting.command(hive, "hive", "delete", identifier, "--json").json
            assert deleted["deleted"] is True


class TestReadingLatestState:
    """Reading Latest State"""

    @pytest.mark.differs(
        "the last line of an id counts",
        "the line with the highest `rev`; without any `rev`, the last one",
        "git may put merged lines into any order",
    )
    def test_the_order_of_lines_with_a_revision_does_not_count(
        self, hive: Hive, beads: Path
    ) -> None:
        done = {**ASSIGNMENT, "status": "completed", "rev": 2}
        write_lines(beads / "queen_assignments.jsonl", done, {**ASSIGNMENT, "rev": 1})
        assert hive.assignments.active("qb-42") is None


class TestWhyAppendOnly:
    """Why Append-Only?"""

    def test_git_merges_two_clones_without_a_conflict(self, quick: QuickQueen, repo: Path) -> None:
        quick("init")
        attributes = (repo / ".beads" / ".gitattributes").read_text()
        assert "queen_*.jsonl text eol=lf merge=union" in attributes

    def test_the_full_history_is_preserved(self, hive: Hive) -> None:
        assignment = hive.assignments.claim("qb-1")
        hive.assignments.release("qb-1")
        assert [each.rev for each in hive.history(assignment.id)] == [1, 2]


class TestIndexes:
    """Indexes (Optional)"""

    @pytest.mark.differs(
        "an index is updated on every write",
        "`queen hive index export` writes it, with `--watch` after every change",
        "QueenBee itself reads its memory, which is never in git",
    )
    def test_the_index_has_this_structure(self, quick: QuickQueen, hive: Hive, beads: Path) -> None:
        (first,) = hive.messages.send("reviewer", "x", issue_id="qb-1")
        hive.messages.reply(first.id, "y")
        assert quick("hive", "index", "export").code == 0
        index = json.loads((beads / "queen_messages.idx.json").read_text())
        assert set(index) >= {"by_id", "by_to", "by_issue", "by_thread"}
        assert first.id in index["by_to"]["reviewer"]


class TestIssueMessages:
    """Issue ↔ Messages"""

    def test_grep_finds_all_messages_of_an_issue(self, hive: Hive, beads: Path) -> None:
        hive.messages.send("reviewer", "x", issue_id="qb-42")
        text = (beads / "queen_messages.jsonl").read_text()
        assert text.count('"issue_id":"qb-42"') == 1


class TestIssueAssignments:
    """Issue ↔ Assignments"""

    def test_the_last_line_of_grep_is_the_state(self, hive: Hive, beads: Path) -> None:
        hive.assignments.claim("qb-42")
        hive.assignments.complete("qb-42")
        rows = (beads / "queen_assignments.jsonl").read_text().splitlines()
        last = [row for row in rows if '"issue_id":"qb-42"' in row][-1]
        assert json.loads(last)["status"] == "completed"


class TestIssueReservations:
    """Issue ↔ Reservations"""

    def test_a_reservation_may_name_its_issue(self, hive: Hive, beads: Path) -> None:
        hive.reservations.reserve(["a"], issue_id="qb-42")
        hive.reservations.reserve(["b"])
        assert [one.get("issue_id") for one in lines(beads, "reservations")] == ["qb-42", None]


class TestMessages:
    """Messages"""

    def test_a_reply_refers_to_a_message_that_exists(self, hive: Hive) -> None:
        with pytest.raises(NotFound):
            hive.messages.reply("qm-none", "x")

    @pytest.mark.differs(
        "`to` is one droid or `human`",
        "also several, or `@all`",
        "one message that everybody reads, also who joins later",
    )
    def test_the_recipient_is_a_droid_that_is_known(self, hive: Hive, repo: Path) -> None:
        (repo / ".factory" / "droids").mkdir(parents=True)
        for name in ("ui-engineer", "reviewer"):
            (repo / ".factory" / "droids" / f"{name}.md").touch()
        hive.messages.send("reviewer", "x")
        hive.messages.send("human", "x")
        hive.messages.send("@all", "x")
        with pytest.raises(NotFound):
            hive.messages.send("nobody", "x")


class TestAssignments:
    """Assignments"""

    def test_an_issue_has_one_active_assignment(self, hive: Hive, reviewer: Hive) -> None:
        hive.assignments.claim("qb-1")
        with pytest.raises(Taken):
            reviewer.assignments.claim("qb-1")

    @pytest.mark.differs(
        "the issue must exist in Beads, and the droid in `.factory/droids/`",
        "where the tracker's file, and that folder, exist; settings say otherwise",
        "neither is needed to begin",
    )
    def test_the_issue_exists(self, hive: Hive, beads: Path) -> None:
        hive.assignments.claim("qb-1")
        write_lines(beads / "issues.jsonl", {"id": "qb-2", "title": "x", "status": "open"})
        with pytest.raises(NotFound):
            hive.assignments.claim("qb-3")


class TestReservations:
    """Reservations"""

    def test_the_pattern_is_a_valid_glob(self, hive: Hive) -> None:
        with pytest.raises(InvalidInput):
            hive.reservations.reserve(["src/[a"])

    def test_it_ends_after_it_began(self, hive: Hive) -> None:
        with pytest.raises(InvalidInput):
            hive.reservations.reserve(["a"], ttl_s=0)


class TestMigration:
    """Migration"""

    def test_a_record_is_appended_once_and_old_records_stay_valid(
        self, quick: QuickQueen, hive: Hive, beads: Path
    ) -> None:
        write_lines(beads / "queen_messages.jsonl", MESSAGE)
        assert (
            quick("hive", "migrate", "v1_to_v2").out
            == "recorded in messages, assignments, reservations\n"
        )
        assert quick("hive", "migrate", "v1_to_v2").out == "It was recorded before.\n"
        line = lines(beads, "messages")[-1]
        assert (set(line), line["_migration"]) == ({"_migration", "at"}, "v1_to_v2")
        assert hive.messages.get("qm-01HZ1A").subject == MESSAGE["subject"]

    def test_a_missing_field_has_its_default(self, hive: Hive, beads: Path) -> None:
        write_lines(beads / "queen_messages.jsonl", {"id": "qm-1", "to": "ui-engineer"})
        message = hive.messages.get("qm-1")
        assert (message.importance, message.read) == ("normal", False)


class TestCliMapping:
    """CLI Mapping"""

    def test_every_command_does_its_operation(self, quick: QuickQueen, hive: Hive) -> None:
        quick.env = {"QUEEN_DROID": "ui-engineer"}
        assert quick("msg", "send", "ui-engineer", "hello", as_="reviewer").code == 0
        (message,) = quick("msg", "inbox", "--json").json
        for command in (
            ("msg", "read", message["id"]), ("msg", "reply", message["id"], "answer"),
            ("issue", "assign", "qb-1", "reviewer"), ("claim", "qb-2", "--new"),
            ("release", "qb-2"),
            ("reserve", "src/**"), ("reserve", "list",), ("reserve", "release", "src/**"),
        ):  # fmt: skip
            assert quick(*command).code == 0, command
