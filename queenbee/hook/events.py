"""What an agent sends to a hook: one event, in the shape of any of the known agents.

Claude Code's protocol is the reference; Codex, Gemini CLI, Cursor, Copilot CLI and VS Code differ
from it in names. `tests/hook/shapes` has a recorded shape of each event, and where it is
documented.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

BEFORE_EDIT = "before edit"
AFTER_EDIT = "after edit"  # Or after another tool: then it has no files.
SESSION_START = "session start"
SESSION_END = "session end"
PROMPT = "prompt"
STOP = "stop"
SUBAGENT_START = "subagent start"
SUBAGENT_END = "subagent end"
WORKTREE_CREATE = "worktree create"
WORKTREE_REMOVE = "worktree remove"
OTHER = "other"

CLAUDE = "claude"
CODEX = "codex"
GEMINI = "gemini"
CURSOR = "cursor"
COPILOT = "copilot"
OPENCODE = "opencode"
QWEN = "qwen"
KILO = "kilo"

_KINDS = {
    "pretooluse": BEFORE_EDIT,
    "beforetool": BEFORE_EDIT,
    "posttooluse": AFTER_EDIT,
    "aftertool": AFTER_EDIT,
    "afterfileedit": AFTER_EDIT,
    "aftertabfileedit": AFTER_EDIT,
    "sessionstart": SESSION_START,
    "sessionend": SESSION_END,
    "userpromptsubmit": PROMPT,
    "userpromptsubmitted": PROMPT,
    "beforesubmitprompt": PROMPT,
    "beforeagent": PROMPT,
    "stop": STOP,
    "agentstop": STOP,
    "afteragent": STOP,
    "subagentstart": SUBAGENT_START,
    "subagentstop": SUBAGENT_END,
    "worktreecreate": WORKTREE_CREATE,
    "worktreeremove": WORKTREE_REMOVE,
}
_TOOLS = frozenset({
    "edit", "write", "multiedit", "notebookedit",  # Claude Code
    "applypatch",  # Codex
    "writefile", "replace",  # Gemini CLI
    "editfile", "searchreplace", "strreplace", "delete", "deletefile", "editnotebook",  # Cursor
    "patch",  # OpenCode
    "editfiles", "createfile", "inserteditintofile", "replacestringinfile",  # VS Code
    "multireplacestringinfile", "editnotebookfile", "create",
    "strreplacebasededittool", "strreplaceeditor", "writetofile", "replaceinfile",
})  # fmt: skip
"""The tools that change files, letters only: agents differ in case and underscores."""
_ALSO_SHOWING = frozenset(("strreplacebasededittool", "strreplaceeditor"))
_SHELLS = frozenset(("bash", "shell", "runshellcommand", "terminal"))
"""The tools that run a command, in letters only."""
_FILE_KEYS = frozenset({
    "filepath", "notebookpath", "path", "file", "absolutepath", "targetfile", "filename", "oldpath",
    "newpath", "relativepath", "pathinproject", "uri",
})  # fmt: skip
"""In letters only, as agents differ in these, too."""
_LIST_KEYS = frozenset(("files", "paths", "edits", "replacements"))
_PLACE_KEYS = ("source", "destination", "src", "dst", "dest", "target", "from", "to")
"""Where tools that copy and move name files; only read if a tool is known to change files."""
_CONTENT_KEYS = frozenset({
    "content", "contents", "new_string", "newString", "new_str", "newText", "new_text", "new_code",
    "file_text", "fileText", "edits", "replacements", "replace", "replacement", "patch", "diff",
})  # fmt: skip
_CHANGING = frozenset({
    "write", "edit", "create", "delete", "remove", "move", "rename", "copy", "replace", "insert",
    "append", "update", "modify", "patch", "save", "overwrite", "truncate", "apply", "unlink",
})  # fmt: skip
_READING = frozenset({
    "read", "get", "list", "ls", "search", "find", "grep", "glob", "view", "show", "stat", "open",
    "cat", "tree", "diff", "fetch", "describe", "check", "lint", "query", "lookup", "exists",
})  # fmt: skip
"""The first words of tools that change nothing; in doubt, an edit counts."""
_PATCH_KEYS = ("command", "input", "patch", "patchText", "patch_text")
_PATCH_BEGIN = "*** Begin Patch"
_PATCH_LINES = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")


_GEMINI_NAMES = frozenset(("BeforeTool", "AfterTool", "BeforeAgent", "AfterAgent"))
_COPILOT_TOOL = {"toolResult": "postToolUse", "error": "postToolUseFailure"}
_COPILOT = {
    "source": "sessionStart",
    "agentName": "subagentStart",
    "reason": "sessionEnd",
    "prompt": "userPromptSubmitted",
}
"""A field that only this event of Copilot CLI has, and the name of the event."""


class Event:
    """One call of the hook: the agent, what happens, the session and the files."""

    __slots__ = (
        "agent", "broken_off", "command", "cwd", "files", "kind", "letters", "name", "session",
        "source", "subagent", "was_kept", "worktree",
    )  # fmt: skip

    def __init__(self, fields: Mapping[str, object], cwd: str) -> None:
        self.name: str = _text(fields, "hook_event_name", "hookEventName") or _unnamed(fields)
        self.letters: str = _letters(self.name)
        """The name of the event, letters only and in lower case."""
        self.kind: str = _KINDS.get(self.letters, OTHER)
        self.agent: str = _agent(fields, self.name)
        self.session = _text(fields, "session_id", "sessionId", "conversation_id")
        self.subagent: str | None = _text(fields, "agent_id", "agentId")
        """The id of the subagent that acts within the session, or None for the session itself."""
        if self.subagent is not None and self.subagent == self.session:
            # Copilot CLI, but for the event of a subagent's end.
            self.session = _text(fields, "parent_agent_id", "parentAgentId") or self.session
        self.source: str = _text(fields, "source", "reason") or ""
        """Why a session starts (`startup`, `resume`, `clear`, `compact`) or ends."""
        count = fields.get("loop_count")
        self.was_kept: bool = fields.get("stop_hook_active") is True or (
            isinstance(count, int) and not isinstance(count, bool) and count > 0
        )
        """Whether the agent goes on only because a hook did not let it stop."""
        self.broken_off: bool = fields.get("status") in ("aborted", "error")
        """Whether the user or an error stopped the agent; only Cursor says so."""
        said = _text(fields, "cwd") or _first(fields.get("workspace_roots"))
        if said is not None and not may_be_a_name(said):
            said = None
        self.cwd: str = os.path.join(cwd, said or "")
        self.worktree: str | None = _text(
            fields, "worktree_path" if self.kind == WORKTREE_REMOVE else "name"
        )
        """The name of a worktree to be made, or the path of one to be removed."""
        self.command: str = _shell_text(fields) if self.kind == BEFORE_EDIT else ""
        """What a shell is about to run; empty if it is no shell."""
        self.files: list[str] = []
        """The files that a tool is about to change, or has changed: absolute names."""
        if self.kind in (BEFORE_EDIT, AFTER_EDIT):
            named = dict.fromkeys(_named_files(fields))
            self.files = [_absolute(os.path.join(self.cwd, name)) for name in named]


def read_event(data: bytes, cwd: str) -> Event:
    """Returns the event in one JSON document. Raises `ValueError` for anything else."""
    fields = json.loads(data)
    if not isinstance(fields, dict):
        raise ValueError("the hook's input is not a JSON object")
    return Event(fields, cwd)


def may_be_a_name(text: str) -> bool:
    """Returns whether a text can name a file: JSON can escape what no file system can hold."""
    try:
        return b"\0" not in os.fsencode(text)
    except ValueError:
        return False


def _absolute(name: str) -> str:
    """Returns an absolute name without `..`, as the kernel follows it: after links."""
    if not name.isascii():
        # The agent may have decoded the bytes by its locale and escaped what that lacks.
        with suppress(ValueError):
            name = os.fsdecode(os.fsencode(name))
    parts = name.split("/")
    if ".." not in parts or "\0" in name:
        return os.path.normpath(name)
    last = len(parts) - 1 if parts[-1] not in ("", ".", "..") else len(parts)
    return os.path.normpath("/".join((os.path.realpath("/".join(parts[:last])), *parts[last:])))


def _shell_text(fields: Mapping[str, object]) -> str:
    tool = _text(fields, "tool_name", "toolName")
    arguments = _arguments(fields) if tool is not None and _letters(tool) in _SHELLS else None
    text = arguments.get("command") if isinstance(arguments, dict) else None
    return text if isinstance(text, str) else ""


def _arguments(fields: Mapping[str, object]) -> object:
    """Returns what a tool is given."""
    found = next(
        (fields[key] for key in ("tool_input", "toolInput", "toolArgs") if key in fields), None
    )
    if isinstance(found, str) and found.lstrip()[:1] == "{":
        return json.loads(found)
    return found


def _named_files(fields: Mapping[str, object]) -> Iterator[str]:
    tool = _text(fields, "tool_name", "toolName")
    if tool is None:
        # Cursor's afterFileEdit names the file itself and no tool.
        yield from _in_arguments({"file_path": fields.get("file_path")})
        return
    name = tool.rpartition("__")[2]  # A server's tool: mcp__files__write_file.
    letters = _letters(name)
    arguments = _arguments(fields)
    if letters not in _TOOLS:
        yield from _by_shape(name, arguments)
        return
    given = arguments if isinstance(arguments, dict) and letters in _ALSO_SHOWING else {}
    if given.get("command") == "view" and not _CONTENT_KEYS.intersection(given):
        return
    yield from _in_patch(arguments, certain="patch" in letters)
    yield from _in_arguments(arguments)


def _by_shape(name: str, arguments: object) -> Iterator[str]:
    """Yields the files that a tool of an unknown kind changes, as far as its name or what it is
    given shows that it does: `mcp__filesystem__move_file`, or any that takes a file and contents.
    """
    if not isinstance(arguments, dict):
        return
    words = _words(name)
    changes, gives = _CHANGING.intersection(words), _CONTENT_KEYS.intersection(arguments)
    # What begins by reading may go on: `find_and_replace`.
    if not (changes and gives if words and words[0] in _READING else changes or gives):
        return
    yield from _in_arguments(arguments)
    yield from _file_names([arguments.get(key) for key in _PLACE_KEYS])


def _words(name: str) -> list[str]:
    """Returns the words of a name in lower case: of `moveFile`, `move_file` and `move-file`."""
    spaced = "".join(f" {char.lower()}" if char.isupper() else char for char in name)
    return "".join(char if char.isalnum() else " " for char in spaced).split()


def _in_arguments(arguments: object) -> Iterator[str]:
    """Yields the files that a tool's arguments name: in their own fields, and in lists."""
    if not isinstance(arguments, dict):
        return
    for key, value in arguments.items():
        if _letters(key) in _FILE_KEYS:
            yield from _file_names([value])
        elif key in _LIST_KEYS and isinstance(value, list):
            # Plain text in a list of edits is what to write, not where.
            yield from _file_names(value if key != "edits" else ())
            for item in value:
                yield from _in_arguments(item)


def _file_names(values: Sequence[object]) -> Iterator[str]:
    """Yields names of files, also of one that an address names, or one below the user's home."""
    for value in values:
        if isinstance(value, str) and value:
            yield value
            if value.startswith("~"):
                yield os.path.expanduser(value)
            elif value.startswith("file:"):
                from urllib.parse import unquote, urlsplit  # noqa: PLC0415 - start-up

                with suppress(ValueError):
                    yield unquote(urlsplit(value).path, errors="surrogateescape")


def _in_patch(value: object, *, certain: bool) -> Iterator[str]:
    """Yields the files that a patch names; for a move, both the old and the new name.

    Unless the tool is `certain` to take a patch, a text is one only if it begins like one.
    """
    texts = [value.get(key) for key in _PATCH_KEYS] if isinstance(value, dict) else [value]
    for text in texts:
        if not isinstance(text, str) or not (certain or text.lstrip().startswith(_PATCH_BEGIN)):
            continue
        for line in text.split("\n"):  # A name may have what else ends a line for Python.
            # Codex, too, takes no notice of spaces around a marker.
            marker = line.strip()
            for start in _PATCH_LINES:
                if marker.startswith(start):
                    yield marker[len(start) :].strip()


def _agent(fields: Mapping[str, object], name: str) -> str:
    said = _text(fields, "agent")
    if said:
        return said
    if "sessionId" in fields:
        return COPILOT
    if "cursor_version" in fields or name[:1].islower():
        return CURSOR
    if name in _GEMINI_NAMES:
        return GEMINI
    transcript = (_text(fields, "transcript_path") or "").replace("\\", "/")
    if "/.gemini/" in transcript:
        return GEMINI
    if "/.qwen/" in transcript:
        return QWEN
    # Codex alone says that there is no transcript.
    if "/.codex/" in transcript or "turn_id" in fields or fields.get("transcript_path", "") is None:
        return CODEX
    return COPILOT if "timestamp" in fields else CLAUDE


def _unnamed(fields: Mapping[str, object]) -> str:
    """Returns the name of an event that has none: Copilot CLI tells events apart by their fields,
    if its configuration writes their names in its own way (`preToolUse`).
    """
    if "sessionId" not in fields:
        return ""
    if "toolName" in fields:
        return next((name for key, name in _COPILOT_TOOL.items() if key in fields), "preToolUse")
    if "stopReason" in fields:
        return "subagentStop" if "agentName" in fields else "agentStop"
    return next((name for key, name in _COPILOT.items() if key in fields), "")


def _text(fields: Mapping[str, object], *names: str) -> str | None:
    found = (fields.get(name) for name in names)
    return next((value for value in found if isinstance(value, str) and value), None)


def _first(value: object) -> str | None:
    first = value[0] if isinstance(value, list) and value else None
    return first if isinstance(first, str) else None


def _letters(name: str) -> str:
    return "".join(char for char in name.lower() if char.isalnum())
