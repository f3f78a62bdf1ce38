"""Leases: when one ends, and what counts at an instant."""

from __future__ import annotations

import types

import pytest
from mutants import mutant

from queenbee.core import leases
from queenbee.core.leases import as_of, assignment_end_ms, is_live, lease_end_ms
from queenbee.core.records import Assignment, Reservation
from queenbee.core.timestamps import format_ms

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


def check_that_no_release_is_later_than_the_end(module: types.ModuleType) -> None:
    for released_ms, end_ms in (
        (MADE_MS + 1, MADE_MS + 1),
        (ENDS_MS, ENDS_MS),
        (ENDS_MS + 60_000, ENDS_MS),
    ):
        released = lease(status="released", released_at=format_ms(released_ms))
        assert module.lease_end_ms(released) == end_ms


class TestTheEndOfALease:
    def test_is_its_ttl(self) -> None:
        assert lease_end_ms(lease()) == ENDS_MS

    def test_is_its_release_if_that_came_first(self) -> None:
        check_that_no_release_is_later_than_the_end(leases)

    def test_that_a_late_release_would_put_off_is_caught(self) -> None:
        broken = mutant(leases, "min(released_ms, lease.expires_ms)", "released_ms")
        with pytest.raises(AssertionError):
            check_that_no_release_is_later_than_the_end(broken)

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
