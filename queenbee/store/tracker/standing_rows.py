"""Where the tracker's issues stand, as `services.board` worked it out: kept in the memory.

One row for each issue that is work, with what decides its place in the order of `queen next`; who
has it, and what documents say of it, is added when somebody asks. ADR 0043.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from queenbee.store.memory import sqlite
from queenbee.store.memory.database import batches, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from typing import TypeVar

    from queenbee.core.readiness import Rank
    from queenbee.store.memory.memory import Memory

    Found = TypeVar("Found")

    Need = tuple[str, str, str]
    """An issue, one that it depends on, and the kind of dependency."""

_CHUNK = 64


class StandingRow:
    """Where one issue stands, as far as its row, and those it depends on, say."""

    __slots__ = ("behind", "chain", "children", "created_ms", "holder", "id", "is_special",
                 "minutes", "priority", "state", "urgency")  # fmt: skip

    def __init__(self, issue_id: str, state: str) -> None:
        self.id: str = issue_id
        self.state: str = state
        """`done`, `waits`, `on_hold` or `ready`."""
        self.holder: str | None = None
        """Whom the tracker names."""
        self.children: bool = False
        """Whether it has children that are not done."""
        self.priority: int = 0
        self.urgency: int = 0
        """The most urgent priority among the issue and those behind it."""
        self.chain: float = 0.0
        self.behind: float = 0.0
        self.created_ms: int = 0
        self.minutes: float | None = None
        """The estimate of an open one."""
        self.is_special: bool = False
        """Whether documents may have more to say of it."""

    def values(self, number: int) -> tuple[object, ...]:
        """Returns the row of the table."""
        return (number, self.id, self.state, self.holder, self.children, self.priority,
                self.urgency, self.chain, self.behind, self.created_ms, self.minutes,
                self.is_special)  # fmt: skip


class StandingRows:
    """The stored standings of one tracker. Safe for threads."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._database = memory.database
        self._of = ""

    def noted(self, number: int) -> list[object] | None:
        """Returns what was noted when they were stored last, or None."""
        query = "SELECT noted FROM boards WHERE number = ?"
        found = self._ask(query, number, row=_noted)
        self._of = self._memory.identity()
        return found[0] if found else None

    @property
    def has_gone(self) -> bool:
        """Whether another memory took the place of the one that had them, which was damaged."""
        return self._memory.identity() != self._of

    def store(
        self,
        number: int,
        noted: tuple[list[object] | None, list[object]],
        ids: Collection[str] | None,
        rows: Iterable[StandingRow],
        needs: Iterable[Need],
    ) -> bool:
        """Replaces the standings of these issues, or of all, and their needs; returns False if
        others did meanwhile. `noted` is what was noted before, and what is now.
        """
        before, now = noted

        def stored() -> bool:
            with self._database.turn():
                if self.noted(number) != before:
                    return False
                db = self._database.db
                for table in ("standings", "needs"):
                    if ids is None:
                        db.execute(f"DELETE FROM {table} WHERE number = ?", (number,))  # noqa: S608
                    else:
                        where = "number = ? AND id = ?"
                        them = ((number, each) for each in ids)
                        db.executemany(f"DELETE FROM {table} WHERE {where}", them)  # noqa: S608
                marks = ", ".join("?" * 12)
                insert = f"INSERT INTO standings VALUES ({marks})"  # noqa: S608
                db.executemany(insert, (each.values(number) for each in rows))
                insert = "INSERT OR REPLACE INTO needs VALUES (?, ?, ?, ?)"
                db.executemany(insert, ((number, *each) for each in needs))
                db.execute("INSERT OR REPLACE INTO boards VALUES (?, ?)", (number, json.dumps(now)))
            self._database.shorten_log()
            return True

        return self._memory.asked(stored)

    def needs(self, number: int, ids: Collection[str], *, reverse: bool = False) -> list[Need]:
        """Returns what these issues depend on, or in `reverse`, what depends on them."""
        found: list[Need] = []
        column = "target" if reverse else "id"
        for marks, some in batches([*ids]):
            query = f"SELECT id, target, kind FROM needs WHERE number = ? AND {column} IN ({marks})"  # noqa: S608
            found += self._ask(query, number, *some, row=lambda *need: tuple(map(_text, need)))
        return found

    def done(self, number: int, ids: Collection[str]) -> set[str]:
        """Returns those of these issues that are done."""
        return {key for key, (state, _, _) in self.states(number, ids).items() if state == "done"}

    def counts(self, number: int) -> list[tuple[str, bool, int]]:
        """Returns how many issues are in each state, with and without a holder."""
        query = "SELECT state, holder IS NOT NULL, count(*) FROM standings WHERE number = ? "
        return self._ask(
            f"{query} GROUP BY 1, 2",
            number,
            row=lambda state, held, count: (_state(state), bool(held), whole_number(count)),
        )

    def takeable_count(self, number: int) -> int:
        """Returns how many are ready, have no holder and no open children."""
        query = f"SELECT count(*) FROM standings WHERE number = ? AND {_TAKEABLE} "  # noqa: S608
        return self._ask(f"{query} AND holder IS NULL", number, row=whole_number)[0]

    def states(self, number: int, ids: Collection[str]) -> dict[str, tuple[str, str | None, bool]]:
        """Returns the state and the holder of these issues, and whether they have open children."""
        found: dict[str, tuple[str, str | None, bool]] = {}
        for marks, some in batches([*ids]):
            query = "SELECT id, state, holder, children FROM standings WHERE number = ? "
            rows = self._ask(
                f"{query} AND id IN ({marks})",
                number,
                *some,
                row=lambda key, state, holder, has: (
                    _text(key), (_state(state), _holder(holder), bool(has))
                ),
            )  # fmt: skip
            found.update(rows)
        return found

    def special(self, number: int) -> list[str]:
        """Returns the open issues of which documents may have more to say."""
        query = "SELECT id FROM standings WHERE number = ? AND special = 1"
        return self._ask(query, number, row=_text)

    def held(self, number: int) -> list[str]:
        """Returns the open issues that the tracker says somebody has."""
        query = "SELECT id FROM standings WHERE number = ? AND holder IS NOT NULL"
        return self._ask(query, number, row=_text)

    def in_order(self, number: int, actor: str | None) -> Iterator[tuple[Rank, str, str | None]]:
        """Yields the issues that are ready, have no open children, and are nobody's or the actor's
        as the tracker says: rank, id and holder of each, the first to take first.
        """
        order = "urgency, chain DESC, behind DESC, created_ms, id"
        query = "SELECT urgency, chain, behind, id, holder FROM standings WHERE number = ? "
        query += f"AND {_TAKEABLE} AND (holder IS NULL OR holder = ?) ORDER BY {order} "
        offset, size = 0, _CHUNK
        while rows := self._ask(
            f"{query} LIMIT ? OFFSET ?", number, actor, size, offset,
            row=lambda urgency, chain, behind, key, holder: (
                (whole_number(urgency), -_minutes(chain), -_minutes(behind)),
                _text(key), _holder(holder),
            ),
        ):  # fmt: skip
            yield from rows
            offset, size = offset + size, 4 * size

    def startable(self, number: int) -> list[tuple[str, str | None]]:
        """Returns the issues that are ready, most urgent first, then oldest, with the holder that
        the tracker names.
        """
        query = "SELECT id, holder FROM standings WHERE number = ? AND state = 'ready' "
        query += "ORDER BY priority, created_ms, id"
        return self._ask(query, number, row=lambda key, holder: (_text(key), _holder(holder)))

    def usual_minutes(self, number: int) -> float:
        """Returns the median of the estimates of open issues; 1 without any."""
        where = "number = ? AND minutes IS NOT NULL"
        query = f"SELECT count(*) FROM standings WHERE {where}"  # noqa: S608
        [count] = self._ask(query, number, row=whole_number)
        query = f"SELECT minutes FROM standings WHERE {where} ORDER BY minutes LIMIT 1 OFFSET ?"  # noqa: S608
        found = self._ask(query, number, count // 2, row=_minutes)
        return found[0] if found else 1.0

    def _ask(self, query: str, *values: object, row: Callable[..., Found]) -> list[Found]:
        """Returns the rows of an answer; what nobody here wrote is damage."""

        def found() -> list[Found]:
            try:
                return [row(*each) for each in self._database.ask(query, *values)]
            except (ValueError, TypeError) as error:
                raise sqlite.DatabaseError("the memory has other rows than were made") from error

        return self._memory.asked(found)


def _noted(text: object) -> list[object]:
    noted = json.loads(_text(text))
    identity, *numbers, wakes_ms, usual = noted
    _text(identity)
    if len(numbers) != 4 or not all(isinstance(each, int) for each in numbers):
        raise ValueError
    _minutes(usual), None if wakes_ms is None else whole_number(wakes_ms)
    return list(noted)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _state(value: object) -> str:
    if value not in ("done", "waits", "on_hold", "ready"):
        raise ValueError
    return str(value)


def _holder(value: object) -> str | None:
    return None if value is None else _text(value)


def _minutes(value: object) -> float:
    if not isinstance(value, int | float):
        raise TypeError
    return float(value)


_TAKEABLE = "state = 'ready' AND children = 0"
