"""Leases: when one ends, and what counts at an instant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stamps import format_ms

from queenbee.core import leases
from queenbee.core.leases import (
    Asker,
    as_of,
    assignment_end_ms,
    is_live,
    lease_end_ms,
    serves,
    stand_against,
)
from queenbee.core.records import Assignment, Reservation

MADE_MS = 1_767_607_200_000
ENDS_MS = MADE_MS + 7_200_000


def lease(**more: object) -> Reservation:
    fields = {
        "id": "qr-1",
        "droid": "ui",
        "pattern": "src/**",
        "status": "active",
        "created_at": format_ms(MADE_MS),
        "expires_at": format_ms(ENDS_MS),
    }
    return Reservation({**fields, **more})


class TestAnInstant:
    def test_before_its_end_a_lease_is_active(self) -> None:
        assert as_of(lease().fields, ENDS_MS - 1).status == "active"

    def test_at_its_very_end_a_lease_has_expired(self) -> None:
        assert as_of(lease().fields, ENDS_MS).status == "expired"

    @pytest.mark.parametrize("end", [None, 7, "soon", ""])
    def test_a_lease_without_a_readable_end_has_expired(self, end: object) -> None:
        assert as_of(lease(expires_at=end).fields, MADE_MS).status == "expired"

    def test_a_released_lease_stays_released(self) -> None:
        assert as_of(lease(status="released").fields, ENDS_MS).status == "released"

    @pytest.mark.parametrize(
        "more", [{"deleted": True}, {"superseded_by": "qr-0"}, {"status": "released"}]
    )
    def test_only_an_active_lease_that_is_not_superseded_is_live(
        self, more: dict[str, object]
    ) -> None:
        assert is_live(lease())
        assert not is_live(lease(**more))


def check_that_no_release_is_later_than_the_end() -> None:
    for released_ms, end_ms in (
        (MADE_MS + 1, MADE_MS + 1),
        (ENDS_MS, ENDS_MS),
        (ENDS_MS + 60_000, ENDS_MS),
    ):
        released = lease(status="released", released_at=format_ms(released_ms))
        assert leases.lease_end_ms(released) == end_ms


def announcement(droid: str = "ui", tree_id: str | None = "t1", **more: object) -> Reservation:
    return lease(droid=droid, exclusive=False, tree_id=tree_id, **more)


DROIDS = st.sampled_from(("api", "ui"))
MAYBE = st.sampled_from((None, "", "one", "two"))
LEASES = st.builds(
    lambda droid, exclusive, tree_id, session: lease(
        droid=droid, exclusive=exclusive, tree_id=tree_id, session=session
    ),
    DROIDS,
    st.booleans(),
    MAYBE,
    MAYBE,
)


def check_who_stands_against_whom() -> None:
    """The rule as the format states it, case by case."""
    here, elsewhere = announcement("ui", "t1", session="s1"), announcement("api", "t2")
    refuses = [
        (lease(droid="ui"), lease(droid="api")),
        (lease(droid="ui"), elsewhere),
        (here, announcement("api", "t1")),
        (here, announcement("ui", "t1", session="s2")),
    ]
    stands_beside = [
        (here, elsewhere),
        (here, announcement("api", None)),
        (announcement("ui", None), announcement("api", None)),
        (announcement("ui", ""), announcement("api", "")),
        (here, announcement("ui", "t2", session="s2")),
        (here, announcement("ui", "t1", session="s1")),
        (here, announcement("ui", "t1")),
        (lease(droid="ui", session="s1"), lease(droid="ui", session="s2")),
        (lease(droid="ui", tree_id="t1", session="s1"), here),
        (lease(droid="ui", tree_id="t1", session="s2"), here),
    ]
    for one, other in refuses:
        assert leases.stand_against(one, other) and leases.stand_against(other, one)
    for one, other in stands_beside:
        assert not leases.stand_against(one, other) and not leases.stand_against(other, one)


class TestTwoLeasesOnOnePath:
    def test_exclude_each_other_by_mode_tree_droid_and_session(self) -> None:
        check_who_stands_against_whom()

    @given(LEASES, LEASES)
    def test_exclude_each_other_both_ways_or_not_at_all(
        self, one: Reservation, other: Reservation
    ) -> None:
        assert stand_against(one, other) == stand_against(other, one)

    @given(LEASES)
    def test_nobody_stands_in_their_own_way(self, one: Reservation) -> None:
        assert not stand_against(one, one)

    @given(LEASES, LEASES)
    def test_an_announcement_excludes_only_announcements_of_its_own_tree(
        self, one: Reservation, other: Reservation
    ) -> None:
        if not (one.exclusive or other.exclusive) and one.tree_id != other.tree_id:
            assert not stand_against(one, other)

    @given(LEASES, LEASES)
    def test_what_a_shared_lease_refuses_an_exclusive_one_refuses_other_droids_too(
        self, one: Reservation, other: Reservation
    ) -> None:
        if stand_against(one, other) and one.droid != other.droid:
            assert stand_against(Reservation({**one.fields, "exclusive": True}), other)

    @given(LEASES, LEASES)
    def test_what_a_lease_serves_it_does_not_refuse(
        self, one: Reservation, other: Reservation
    ) -> None:
        asker = Asker(
            other.droid, exclusive=other.exclusive, tree_id=other.tree_id, session=other.session
        )
        assert not (serves(one, asker) and stand_against(one, asker))
        assert serves(one, asker) or one.droid != other.droid or one.fields != other.fields

    def test_a_lease_without_the_fields_of_an_announcement_is_read_as_before(self) -> None:
        old = lease(droid="ui", exclusive=False)
        assert not stand_against(old, announcement("api", "t1"))
        assert stand_against(old, lease(droid="api"))


class TestTheEndOfALease:
    def test_is_its_ttl(self) -> None:
        assert lease_end_ms(lease()) == ENDS_MS

    def test_is_its_release_if_that_came_first(self) -> None:
        check_that_no_release_is_later_than_the_end()

    def test_is_its_ttl_where_the_release_cannot_be_read(self) -> None:
        assert lease_end_ms(lease(status="released", released_at="yesterday")) == ENDS_MS

    def test_is_its_beginning_for_one_that_was_deleted(self) -> None:
        assert lease_end_ms(lease(deleted=True)) == MADE_MS


class TestTheEndOfAnAssignment:
    def assignment(self, **more: object) -> Assignment:
        return Assignment({"id": "qa-1", "created_at": format_ms(MADE_MS), **more})

    def test_is_never_while_it_is_active(self) -> None:
        assert assignment_end_ms(self.assignment(status="active")) == leases.NEVER_MS

    def test_is_its_last_change(self) -> None:
        done = self.assignment(status="completed", updated_at=format_ms(ENDS_MS))
        assert assignment_end_ms(done) == ENDS_MS

    def test_is_its_beginning_for_one_that_was_deleted(self) -> None:
        deleted = self.assignment(status="active", deleted=True, updated_at=format_ms(ENDS_MS))
        assert assignment_end_ms(deleted) == MADE_MS
