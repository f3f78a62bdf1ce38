"""Claude Code's settings: adds the hook and removes it, and changes nothing else.

`docs/enforcement.md`, section "Claude Code", shows what is written.
"""

from __future__ import annotations

import codecs
import json
import os
import shutil
import sys
from typing import TYPE_CHECKING

from queenbee.core.text import shell_quoted
from queenbee.errors import NotFound, Unreadable, Unwritable
from queenbee.hook.json_text import Container, begin, cut, insert
from queenbee.store import safe_open
from queenbee.store.documents import read_document, write_document

if TYPE_CHECKING:
    from collections.abc import Iterator

    Group = dict[str, object]

SETTINGS = os.path.join(".claude", "settings.json")
EDITS = "Edit|Write|MultiEdit|NotebookEdit"
NEWS = f"{EDITS}|Bash|Task|Agent"
"""The tools after which an agent hears what is new: those that take longer than the hook."""
_TIMEOUT_S = 10
_OURS = ("queen-hook", "queenbee.hook")
_ALONE = " -E -P -X utf8"
"""Keeps the working directory and PYTHONPATH off the interpreter's path, and the locale out."""
_MISSING = '{"systemMessage": "queen-hook was not found: QueenBee does not guard edits"}'


def command() -> str:
    """Returns the shell command that runs the hook.

    It is the bare name if that is on the `PATH`, so that settings can be shared; otherwise a path
    on this machine.
    """
    if shutil.which("queen-hook"):
        return "queen-hook"
    script = os.path.join(os.path.dirname(sys.executable), "queen-hook")
    if os.access(script, os.X_OK):
        return shell_quoted(script)
    return f"{shell_quoted(sys.executable)}{_ALONE} -m queenbee.hook.main"


def groups(run: str) -> dict[str, Group]:
    """Returns what is added to the settings, by event.

    On a machine without the hook, such as a colleague's, nothing fails, and the start of a session
    reports that the hook is missing.
    """
    program = run.partition(_ALONE)[0]
    silent = f"! command -v {program} >/dev/null 2>&1 || {run}"
    spoken = f"if command -v {program} >/dev/null 2>&1; then {run}; else echo '{_MISSING}'; fi"
    edit: Group = {"matcher": EDITS, "hooks": [_handler(silent)]}
    return {
        "PreToolUse": edit,
        "PostToolUse": {"matcher": NEWS, "hooks": [_handler(silent)]},
        "UserPromptSubmit": {"hooks": [_handler(silent)]},
        "Stop": {"hooks": [_handler(silent)]},
        "SessionStart": {"hooks": [_handler(spoken)]},
        "SessionEnd": {"hooks": [_handler(silent)]},
    }


def install(path: str, wanted: dict[str, Group]) -> bool:
    """Adds the hook to a settings file, or makes the file; returns whether that changed it.

    Keeps every byte that was there. Raises `Unreadable`, and changes nothing, if the file is not
    JSON or does not have the structure of settings.
    """
    text = _read(path)
    if text is not None and _is_installed(path, text, wanted):
        return False
    cleared = None if text is None else without_hook(path, text)
    if cleared is None:
        _write(path, json.dumps({"hooks": {e: [g] for e, g in wanted.items()}}, indent=2) + "\n")
        return True
    changed = with_hook(path, cleared, wanted)
    if _parsed(path, without_hook(path, changed)) != _parsed(path, cleared):
        raise Unreadable(f"{path} cannot be changed safely", hint="add the hook by hand", path=path)
    _write(path, changed)
    return True


def uninstall(path: str) -> bool:
    """Removes the hook from a settings file; returns whether it was there.

    The rest is byte for byte what it was before the hook was added. A file that held only the
    hook is deleted.
    """
    text = _read(path)
    if text is None or not _installed(path, text):
        return False
    cleared = without_hook(path, text)
    if cleared is not None:
        _write(path, cleared)
        return True
    try:
        safe_open.unlink(safe_open.resolved(path))
    except OSError as error:
        raise Unwritable(f"{path} cannot be removed: {error.strerror}", path=path) from error
    return True


def installed_events(path: str) -> list[str]:
    """Returns the events for which a settings file runs the hook."""
    text = _read(path)
    return [] if text is None else [event for event, _ in _installed(path, text)]


def with_hook(path: str, text: str, wanted: dict[str, Group]) -> str:
    """Returns settings with the hook added to them; keeps every byte that was there.

    Raises `Unreadable`, naming `path`, for settings of another structure.
    """
    for event, group in wanted.items():
        root = Container(text, begin(text))
        hooks = root.member("hooks")
        if hooks is None:
            text = insert(text, root, "hooks", {event: [group]}, 1)
            continue
        events = _container(path, text, hooks.value, "{", "hooks")
        entry = events.member(event)
        if entry is None:
            text = insert(text, events, event, [group], 2)
        else:
            entries = _container(path, text, entry.value, "[", f"hooks.{event}")
            text = insert(text, entries, None, group, 3)
    return text


def without_hook(path: str, text: str) -> str | None:
    """Returns the settings without our hook, or None if they held nothing else."""
    left: str | None = text
    while left is not None:
        found = next(_ours(path, left), None)
        if found is None:
            return left
        left = cut(left, *found)
    return None


def _handler(run: str) -> dict[str, object]:
    return {"type": "command", "command": run, "timeout": _TIMEOUT_S}


def _is_installed(path: str, text: str, wanted: dict[str, Group]) -> bool:
    found = _installed(path, text)
    return len(found) == len(wanted) and dict(found) == wanted


def _installed(path: str, text: str) -> list[tuple[str, object]]:
    """Returns the groups that run our hook, each with its event."""
    found = []
    for containers, index in _ours(path, text):
        _, events, groups, *deeper = containers
        group = groups.items[0 if deeper else index]
        event = next(item for item in events.items if item.value == groups.open)
        found.append((str(event.key), json.loads(text[group.start : group.end])))
    return found


def _ours(path: str, text: str) -> Iterator[tuple[list[Container], int]]:
    """Yields where our hook is: the containers from the root down, and the index in the last one.

    That is the whole group if all of its handlers are ours, else the handler in it.
    """
    root = Container(text, begin(text))
    hooks = root.member("hooks")
    if hooks is None:
        return
    events = _container(path, text, hooks.value, "{", "hooks")
    for event in events.items:
        entries = _container(path, text, event.value, "[", f"hooks.{event.key}")
        for number, entry in enumerate(entries.items):
            group = json.loads(text[entry.start : entry.end])
            handlers = group.get("hooks") if isinstance(group, dict) else None
            mine = [_is_ours(each) for each in handlers] if isinstance(handlers, list) else []
            if mine and all(mine):
                yield [root, events, entries], number
            elif any(mine):
                inner = Container(text, entry.value)
                member = inner.member("hooks")
                assert member is not None
                inner_handlers = Container(text, member.value)
                yield [root, events, entries, inner, inner_handlers], mine.index(True)


def _is_ours(handler: object) -> bool:
    run = handler.get("command") if isinstance(handler, dict) else None
    return isinstance(run, str) and any(name in run for name in _OURS)


def _container(path: str, text: str, start: int, bracket: str, name: str) -> Container:
    if text[start] != bracket:
        kind = "an object" if bracket == "{" else "an array"
        raise Unreadable(f"{path}: {name} is not {kind}; nothing was changed", path=path)
    return Container(text, start)


def _parsed(path: str, text: str | None) -> object:
    if text is None:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(
            f"{path} is not JSON: {error}; nothing was changed",
            hint="correct the file, then run it again",
            path=path,
        ) from error
    if not isinstance(value, dict):
        raise Unreadable(f"{path} is not a JSON object; nothing was changed", path=path)
    return value


def _read(path: str) -> str | None:
    """Returns the settings' text, or None if there is no file. Raises `Unreadable`."""
    try:
        text = read_document(path).decode()
    except NotFound:
        return None
    except UnicodeDecodeError as error:
        raise Unreadable(f"{path} is not UTF-8; nothing was changed", path=path) from error
    _parsed(path, text)
    return text


def _write(path: str, text: str) -> None:
    # Writes to the target of a symbolic link: settings are often kept elsewhere and linked.
    path = safe_open.resolved(path)
    bom = b""
    if os.path.exists(path):
        bom = codecs.BOM_UTF8 if safe_open.read(path, 3) == codecs.BOM_UTF8 else b""
    write_document(path, bom + text.encode())
