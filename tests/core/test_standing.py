"""Which of two grants stands is decided by the records alone, and the same way everywhere."""

from __future__ import annotations

import pytest
from extent import examples
from glob_reference import share_a_path
from hypothesis import given, settings
from hypothesis import strategies as st
from stamps import format_ms

from queenbee.core import standing
from queenbee.core.glob import pattern
from queenbee.core.records import Assignment, Reservation
from queenbee.core.standing import Settled, superseded_assignments, superseded_leases

DROIDS = st.sampled_from(("api", "docs", "ui"))
PATTERNS = ("src/a.py", "src/*", "src/**", "docs/**", "**/a.py")


def superseder(lease, rivals_of):
    """The rule as it is stated, one lease at a time: the reference for the sweep."""
    if never_was(lease):
        return None
    older = [each for each in rivals_of(lease) if standing._excludes(each, lease)]
    for each in sorted(older, key=lambda each: each.age):
        if superseder(each, rivals_of) is None:
            return each.id
    return None


def never_was(lease):
    return standing.lease_end_ms(lease) <= lease.created_ms


def lease(number, droid, born, ends, pattern="src/**", **more):
    fields = {
        "id": f"qr-{number:03}",
        "droid": droid,
        "pattern": pattern,
        "created_at": format_ms(born),
        "expires_at": format_ms(ends),
        "status": "active",
        "exclusive": True,
        **more,
    }
    return Reservation(fields)


def assignment(number, droid, born, ended=None, **more):
    fields = {
        "id": f"qa-{number:03}",
        "droid": droid,
        "issue_id": "qb-1",
        "created_at": format_ms(born),
        "updated_at": format_ms(ended or born),
        "status": "active" if ended is None else "released",
        **more,
    }
    return Assignment(fields)


@st.composite
def histories_of_leases(draw):
    """Leases as clones that were apart may bring together, with ties in time."""
    drawn = draw(
        st.lists(
            st.tuples(
                DROIDS,
                st.integers(0, 8),
                st.integers(1, 5),
                st.sampled_from(PATTERNS),
                st.booleans(),
                st.sampled_from((None, 0, 2)),
                st.sampled_from((None, "t1", "t2")),
                st.sampled_from((None, "s1", "s2")),
            ),
            max_size=10,
        )
    )
    return [
        lease(
            number,
            droid,
            born,
            born + length,
            pattern,
            exclusive=exclusive,
            tree_id=tree_id,
            session=session,
            **(
                {"status": "released", "released_at": format_ms(born + released)}
                if released is not None
                else {}
            ),
        )
        for number, (
            droid,
            born,
            length,
            pattern,
            exclusive,
            released,
            tree_id,
            session,
        ) in enumerate(drawn)
    ]


def excluded_by_the_format(one, other):
    """The rule of docs/format.md, in other words than the code's."""
    if one.exclusive or other.exclusive:
        return one.droid != other.droid
    if not one.tree_id or one.tree_id != other.tree_id:
        return False
    named = bool(one.session) and bool(other.session)
    return one.droid != other.droid or (named and one.session != other.session)


def rivals_among(leases):
    return lambda one: [each for each in leases if share_a_path(each.pattern, one.pattern)]


class TestLeases:
    def test_the_older_grant_wins(self):
        older, younger = lease(2, "ui", 0, 10), lease(1, "api", 5, 15)
        assert superseded_leases([younger, older]) == {"qr-001": "qr-002"}

    def test_the_id_decides_between_grants_of_one_instant(self):
        assert superseded_leases([lease(2, "ui", 0, 9), lease(1, "api", 0, 9)]) == {
            "qr-002": "qr-001"
        }

    def test_a_grant_made_after_the_end_of_another_is_valid(self):
        assert superseded_leases([lease(1, "ui", 0, 5), lease(2, "api", 5, 9)]) == {}

    def test_a_grant_made_after_the_release_of_another_is_valid(self):
        released = lease(1, "ui", 0, 9, status="released", released_at=format_ms(3))
        assert superseded_leases([released, lease(2, "api", 3, 9)]) == {}

    def test_a_grant_that_lost_excludes_nobody(self):
        first, second = lease(1, "ui", 0, 4), lease(2, "api", 2, 9)
        third = lease(3, "docs", 5, 9)
        assert superseded_leases([first, second, third]) == {"qr-002": "qr-001"}

    def test_two_shared_leases_stand_together(self):
        leases = [lease(1, "ui", 0, 9, exclusive=False), lease(2, "api", 1, 9, exclusive=False)]
        assert superseded_leases(leases) == {}

    def test_patterns_of_leases_that_cannot_exclude_each_other_are_not_compared(self, monkeypatch):
        """Hundreds of long ones would keep the first read waiting for half a minute."""
        shared = [lease(number, f"d{number}", 0, 9, exclusive=False) for number in range(5)]
        own = [lease(number, "d9", 1, 9) for number in range(5, 10)]
        compared, meet = [], pattern.paths_meet
        monkeypatch.setattr(pattern, "paths_meet", lambda *two: compared.append(two) or meet(*two))
        assert len(superseded_leases([*shared, *own])) == 5
        assert len(compared) == 5 * 5

    def test_announcements_of_two_working_trees_stand_together(self):
        one = lease(1, "ui", 0, 9, exclusive=False, tree_id="t1", session="s1")
        other = lease(2, "api", 1, 9, exclusive=False, tree_id="t2", session="s2")
        assert superseded_leases([one, other]) == {}

    def test_of_announcements_in_one_working_tree_the_older_wins(self):
        one = lease(1, "ui", 0, 9, exclusive=False, tree_id="t1", session="s1")
        other = lease(2, "ui", 1, 9, exclusive=False, tree_id="t1", session="s2")
        assert superseded_leases([other, one]) == {"qr-002": "qr-001"}

    def test_an_exclusive_grant_wins_over_a_younger_announcement(self):
        other = lease(2, "api", 1, 9, exclusive=False, tree_id="t2")
        assert superseded_leases([lease(1, "ui", 0, 9), other]) == {"qr-002": "qr-001"}

    def test_ones_own_leases_stand_together(self):
        assert superseded_leases([lease(1, "ui", 0, 9), lease(2, "ui", 1, 9)]) == {}

    def test_a_deleted_grant_excludes_nobody(self):
        assert superseded_leases([lease(1, "ui", 0, 9, deleted=True), lease(2, "api", 1, 9)]) == {}

    def test_a_pattern_that_cannot_be_read_excludes_nobody(self):
        broken = lease(1, "ui", 0, 9, pattern="src/[")
        assert superseded_leases([broken, lease(2, "api", 1, 9, pattern="**")]) == {}

    @pytest.mark.slow
    @given(histories_of_leases(), st.randoms(use_true_random=False))
    @settings(max_examples=examples(150))
    def test_the_verdict_does_not_depend_on_the_order_of_the_records(self, leases, random):
        shuffled = random.sample(leases, len(leases))
        assert superseded_leases(shuffled) == superseded_leases(leases)

    @pytest.mark.slow
    @given(histories_of_leases())
    @settings(max_examples=examples(150))
    def test_judging_one_and_judging_all_say_the_same(self, leases):
        verdicts = superseded_leases(leases)
        for each in leases:
            assert superseder(each, rivals_among(leases)) == verdicts.get(each.id)

    @pytest.mark.slow
    @given(histories_of_leases(), st.data())
    @settings(max_examples=examples(300))
    def test_judging_the_last_ones_says_what_judging_all_says(self, leases, data):
        """Also where a remote has confirmed some, and where others outrank later ones."""
        ids, settled, known = [each.id for each in leases], Settled(), []
        for each in data.draw(st.permutations(leases)):
            more = {"token": data.draw(st.sampled_from((None, 1, 2)))}
            more["outranks"] = data.draw(st.lists(st.sampled_from(ids), max_size=1))
            known.append(Reservation({**each.fields, **more}))
            if each.created_ms < settled.since_ms:
                settled = Settled()
            some = [
                one
                for one in known
                if one.created_ms >= settled.since_ms or one.id in settled.counting
            ]
            settled = settled.going_on(some, again=data.draw(st.integers(1, 3)))
            assert settled.lost == superseded_leases(known)

    def test_one_that_loses_to_a_later_one_is_judged_again_with_those_that_it_has_beaten(self):
        leases = [lease(1, "ui", 0, 9), lease(2, "api", 1, 9), lease(3, "db", 2, 9, token=1)]
        settled = Settled().going_on(leases, again=2)
        assert settled.counting == ["qr-001"]
        again = settled.going_on(leases, again=2)
        assert again.lost == superseded_leases(leases) == {"qr-001": "qr-003", "qr-002": "qr-001"}

    def test_of_those_that_are_judged_only_the_last_ones_are_judged_again(self):
        leases = [lease(number, "ui", number, number + 2) for number in range(9)]
        settled = Settled().going_on(leases, again=3)
        assert (settled.since_ms, settled.counting) == (leases[6].created_ms, ["qr-005"])

    @pytest.mark.slow
    @given(histories_of_leases())
    @settings(max_examples=examples(150))
    def test_those_that_stand_never_exclude_each_other(self, leases):
        lost = superseded_leases(leases)
        standing_ones = [each for each in leases if each.id not in lost and not never_was(each)]
        for one in standing_ones:
            for other in standing_ones:
                assert (
                    not excluded_by_the_format(one, other)
                    or not share_a_path(one.pattern, other.pattern)
                    or standing.lease_end_ms(one) <= other.created_ms
                    or standing.lease_end_ms(other) <= one.created_ms
                )

    def test_a_chain_of_thousands_is_judged(self):
        chain = [lease(n, "ui" if n % 2 else "api", n * 10, n * 10 + 15) for n in range(3_000)]
        lost = superseded_leases(chain)
        assert lost == {chain[n].id: chain[n - 1].id for n in range(1, 3_000, 2)}


class TestWhatARecordSaysAboutTheOrder:
    """What a machine writes when its clock contradicts what it knows."""

    def test_one_that_follows_an_ended_grant_does_not_lose_to_it(self):
        ended = lease(1, "ui", 0, 90, status="released", released_at=format_ms(80))
        late = lease(2, "api", 5, 15, follows=["qr-001"])
        assert superseded_leases([ended, late]) == {}
        assert superseded_leases([ended, lease(2, "api", 5, 15)]) == {"qr-002": "qr-001"}

    def test_nor_does_it_exclude_one_that_it_follows(self):
        ended = lease(2, "ui", 9, 90, status="released", released_at=format_ms(80))
        assert superseded_leases([lease(1, "api", 5, 15, follows=["qr-002"]), ended]) == {}

    def test_following_a_grant_that_has_not_ended_says_nothing(self):
        late = lease(2, "api", 5, 15, follows=["qr-001"])
        assert superseded_leases([lease(1, "ui", 0, 90), late]) == {"qr-002": "qr-001"}

    def test_one_that_is_outranked_stays_lost_after_the_end_of_the_other(self):
        ended = {"status": "released", "released_at": format_ms(4)}
        older = lease(1, "ui", 0, 90, outranks=["qr-002"], **ended)
        assert superseded_leases([older, lease(2, "api", 5, 15)]) == {"qr-002": "qr-001"}

    @pytest.mark.parametrize(
        "more", [{"pattern": "docs/**"}, {"pattern": "src/["}, {"droid": "ui"}]
    )
    def test_one_can_only_outrank_a_younger_grant_that_it_conflicts_with(self, more):
        older = lease(1, "ui", 0, 2, outranks=["qr-002"])
        other = {"droid": "api", "born": 5, "ends": 15, **more}
        assert superseded_leases([older, lease(2, **other)]) == {}

    def test_what_is_not_a_list_of_ids_says_nothing(self):
        older = lease(1, "ui", 0, 2, outranks="qr-002", follows=[3, None])
        assert superseded_leases([older, lease(2, "api", 5, 15, outranks=7)]) == {}

    def test_one_that_ended_before_it_began_is_not_superseded(self):
        gone = lease(2, "api", 5, 15, status="released", released_at=format_ms(1))
        assert superseded_leases([lease(1, "ui", 0, 90), gone]) == {}

    def test_the_same_holds_for_assignments(self):
        ended, late = assignment(1, "ui", 0, 80), assignment(2, "api", 5)
        assert superseded_assignments([ended, late]) == {"qa-002": "qa-001"}
        follower = assignment(2, "api", 5, follows=["qa-001"])
        assert superseded_assignments([ended, follower]) == {}
        older = assignment(1, "ui", 0, 4, outranks=["qa-002"])
        assert superseded_assignments([older, late]) == {"qa-002": "qa-001"}
        gone = assignment(2, "api", 5, 1)
        assert superseded_assignments([assignment(1, "ui", 0), gone]) == {}


class TestAssignments:
    def test_the_older_grant_wins(self):
        older, younger = assignment(2, "ui", 0), assignment(1, "api", 5)
        assert superseded_assignments([younger, older]) == {"qa-001": "qa-002"}

    def test_a_grant_made_after_the_end_of_another_is_valid(self):
        assert superseded_assignments([assignment(1, "ui", 0, 5), assignment(2, "api", 5)]) == {}

    def test_a_grant_that_lost_excludes_nobody(self):
        grants = [assignment(1, "ui", 0, 4), assignment(2, "api", 2), assignment(3, "docs", 5)]
        assert superseded_assignments(grants) == {"qa-002": "qa-001"}

    def test_a_deleted_grant_excludes_nobody(self):
        grants = [assignment(1, "ui", 0, deleted=True), assignment(2, "api", 1)]
        assert superseded_assignments(grants) == {}

    @given(
        st.lists(st.tuples(DROIDS, st.integers(0, 6), st.sampled_from((None, 1, 3))), max_size=8),
        st.randoms(use_true_random=False),
    )
    @settings(max_examples=examples(150))
    def test_the_verdict_does_not_depend_on_the_order_of_the_records(self, drawn, random):
        grants = [
            assignment(number, droid, born, None if length is None else born + length)
            for number, (droid, born, length) in enumerate(drawn)
        ]
        shuffled = random.sample(grants, len(grants))
        assert superseded_assignments(shuffled) == superseded_assignments(grants)


@st.composite
def histories_with_confirmed_leases(draw):
    """Leases of which some have a token, at times that say nothing about the tokens' order."""
    leases = draw(histories_of_leases())
    tokens = st.one_of(st.none(), st.integers(1, 5))
    return [Reservation({**each.fields, "token": draw(tokens)}) for each in leases]


class TestConfirmedGrants:
    """A token is a remote's word, and no timestamp stands against it."""

    @given(histories_with_confirmed_leases(), st.randoms(use_true_random=False))
    @settings(max_examples=examples(150))
    def test_the_verdict_does_not_depend_on_the_order_of_the_records(self, leases, random):
        shuffled = random.sample(leases, len(leases))
        assert superseded_leases(leases) == superseded_leases(shuffled)

    @given(histories_with_confirmed_leases())
    @settings(max_examples=examples(150))
    def test_a_confirmed_lease_never_loses(self, leases):
        lost = superseded_leases(leases)
        assert not [each for each in leases if each.token and each.id in lost]

    @given(histories_with_confirmed_leases())
    @settings(max_examples=examples(150))
    def test_two_that_stand_and_exclude_each_other_are_both_confirmed(self, leases):
        lost = superseded_leases(leases)
        stand = [each for each in leases if each.id not in lost and not never_was(each)]
        for one in stand:
            for other in stand:
                if standing._excludes(one, other) and share_a_path(one.pattern, other.pattern):
                    assert one.token and other.token

    @pytest.mark.parametrize("born", [0, 5, 9])
    def test_it_wins_over_one_without_a_token_however_old_that_seems(self, born):
        plain, sure = lease(1, "api", 5, 90), lease(2, "ui", born, 90, token=7)
        assert superseded_leases([plain, sure]) == {plain.id: sure.id}
        given_, sure_ = assignment(1, "api", 5), assignment(2, "ui", born, token=7)
        assert superseded_assignments([given_, sure_]) == {given_.id: sure_.id}

    def test_one_that_was_withdrawn_excludes_nobody(self):
        plain = lease(1, "api", 5, 90)
        gone = lease(2, "ui", 6, 90, token=7, status="released", deleted=True)
        assert superseded_leases([plain, gone]) == {}
        gone = assignment(2, "ui", 6, 7, token=7, deleted=True)
        assert superseded_assignments([assignment(1, "api", 5), gone]) == {}

    def test_of_two_assignments_in_effect_the_smaller_token_counts(self):
        early, late = assignment(1, "api", 9, token=3), assignment(2, "ui", 5, token=4)
        assert superseded_assignments([early, late]) == {late.id: early.id}

    @pytest.mark.parametrize("token", [0, -1, True, "7", 2**53, None, 1.5])
    def test_what_is_no_token_says_nothing(self, token):
        older, younger = lease(1, "api", 5, 90), lease(2, "ui", 6, 90, token=token)
        assert superseded_leases([older, younger]) == {younger.id: older.id}
