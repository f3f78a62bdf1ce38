"""JSON of one file that is no list of issues, but holds them: Trello's board, Task Master's file.

Pure. The entries have our names for the fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from queenbee.documents.issue_lists.values import objects

Entry = dict[str, Any]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_trello(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("cards"), list) and "lists" in value


def _of_trello(board: Mapping[str, Any]) -> Iterator[Entry]:
    lists = {str(each.get("id")): each for each in objects(board.get("lists"))}
    people = {str(each.get("id")): each.get("username") for each in objects(board.get("members"))}
    steps = _by_card(
        (each.get("idCard"), _steps(each)) for each in objects(board.get("checklists"))
    )
    said = _by_card(
        (_inner(each, "data", "card").get("id"), _comment(each))
        for each in objects(board.get("actions"))
        if each.get("type") == "commentCard"
    )
    for card in objects(board["cards"]):
        key, column = str(card.get("id")), lists.get(str(card.get("idList")), {})
        is_archived = card.get("closed") is True or column.get("closed") is True
        yield {
            "key": card.get("shortLink") or key,
            "url": card.get("shortUrl") or card.get("url"),
            "title": card.get("name"),
            "description": card.get("desc"),
            "acceptance_criteria": "\n".join(steps.get(key, [])),
            "state": "complete" if card.get("dueComplete") is True else column.get("name"),
            "archived_at": card.get("dateLastActivity") if is_archived else None,
            "labels": [
                each.get("name") or each.get("color") for each in objects(card.get("labels"))
            ],
            "assignee": [people.get(str(each)) for each in _list(card.get("idMembers"))],
            "comments": [*reversed(said.get(key, []))],
            "updated_at": card.get("dateLastActivity"),
            "due_at": card.get("due"),
        }  # fmt: skip


def _by_card(found: Iterable[tuple[Any, Any]]) -> dict[str, list[Any]]:
    cards: dict[str, list[Any]] = {}
    for card, value in found:
        cards.setdefault(str(card), []).extend(value if isinstance(value, list) else [value])
    return cards


def _steps(checklist: Mapping[str, Any]) -> list[str]:
    return [
        f"- [{'x' if each.get('state') == 'complete' else ' '}] {each.get('name')}"
        for each in objects(checklist.get("checkItems"))
    ]


def _comment(action: Mapping[str, Any]) -> Entry:
    return {
        "text": _inner(action, "data").get("text"),
        "author": _inner(action, "memberCreator").get("username"),
        "created_at": action.get("date"),
    }


def _inner(value: Any, *names: str) -> Mapping[str, Any]:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _tags(value: Any) -> dict[str, list[Entry]]:
    """Returns the tasks of each tag of a Task Master file, or of one tag's list; none for anything
    else.
    """
    if isinstance(value, list) and all(
        isinstance(each, dict) and "testStrategy" in each for each in value
    ):
        value = {"tasks": value}
    if not isinstance(value, dict):
        return {}
    tags = value if "tasks" not in value else {"master": value}
    found = {name: objects(_inner(tags, name).get("tasks")) for name in tags}
    known = {"status", "dependencies", "subtasks", "testStrategy", "details"}
    is_one = all(known & {*task} for tasks in found.values() for task in tasks)
    return {name: tasks for name, tasks in found.items() if tasks} if is_one else {}


def _of_task_master(value: Any) -> Iterator[Entry]:
    for tag, tasks in _tags(value).items():
        for task in tasks:
            yield from _of_task(tag, task, None)


def _of_task(tag: str, task: Mapping[str, Any], parent: str | None) -> Iterator[Entry]:
    number = str(task.get("id"))
    key = f"{parent}.{number}" if parent else f"{tag}/{number}"
    yield {
        "key": key,
        "title": task.get("title"),
        "description": task.get("description"),
        "design": task.get("details"),
        "acceptance_criteria": task.get("testStrategy"),
        "state": task.get("status"),
        "priority": task.get("priority"),
        "labels": [] if tag == "master" else [tag],
        "parent": parent,
        "blocked_by": [
            # Of a subtask, a plain number is another subtask of its task.
            f"{parent}.{each}" if parent and "." not in str(each) else f"{tag}/{each}"
            for each in _list(task.get("dependencies"))
        ],
        "updated_at": task.get("updatedAt"),
    }
    for each in objects(task.get("subtasks")) if parent is None or parent.count(".") < 9 else ():
        yield from _of_task(tag, each, key)


BOARDS: tuple[
    tuple[str, Callable[[Any], object], Callable[[Any], Iterator[Entry]]], ...
] = (
    ("trello", _is_trello, _of_trello),
    ("taskmaster", _tags, _of_task_master),
)  # fmt: skip
"""The name of each, what tells that a JSON value is one, and what makes entries of it."""
