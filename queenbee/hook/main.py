"""The entry point of `queen-hook`: one event of an agent on standard input, one answer back.

    main.respond     reads the event (events) and decides what handles it
    shell_commands   a shell command: whether git would take away what others have in this tree
    editing          an edit: which hives it concerns, and whether another droid holds a file
    refusals         the text of a refusal
    permits          whether an earlier decision about the file still stands; permitting notes it
    session_events   the start and the end of a session and of its subagents
    acting_names     the name that each of them acts under
    news             what the agent should hear: at a prompt, after a tool, when it stops
    neighbours       whose unmerged work is in a file that is edited, and whether it conflicts
    worktree_events  a worktree that an agent makes or removes
    answers          the JSON that the asking agent reads

The exit status is 0, because agents read some others as "block"; except for a worktree that could
not be removed, which 0 would say. An internal error never stops an agent; it is logged in
`hook.log` beside the memory and reported on standard error. An edit is stopped only if the hive
says that another droid holds the file.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress

from queenbee.errors import NoHive, QueenError, Unreachable
from queenbee.hook import answers, events
from queenbee.hook.answers import Answer, Plain
from queenbee.hook.events import Event

_USAGE = """\
queen-hook reads one event of a coding agent as JSON from standard input and answers it.
Agents run it; `queen setup` adds it to their settings. See docs/agents.md.
To turn it off, set QUEEN_HOOK=off in the environment of the agent.
"""


_OF_SESSIONS = frozenset((
    events.SESSION_START, events.SESSION_END, events.SUBAGENT_START, events.SUBAGENT_END,
))  # fmt: skip


def main() -> None:
    """Answers the event on standard input."""
    # A hook lives for milliseconds, and what it leaves behind is freed by its end.
    gc.disable()
    status = 0
    try:
        status = _exchange()
    except (OSError, ValueError, AttributeError):
        # A standard stream is full, or closed (then it is None): nobody can be told.
        if os.environ.get("QUEEN_DEBUG"):
            raise
    # Every file is closed by now; an orderly shutdown of the interpreter costs 3 ms of 28.
    os._exit(status)


def _exchange() -> int:
    """Returns the exit status."""
    status = 0
    if len(sys.argv) > 1 or (sys.stdin is not None and os.isatty(0)):
        sys.stdout.write(_USAGE)
    elif sys.stdin is not None:
        answer = respond(sys.stdin.buffer.read(), os.environ, _cwd())
        if isinstance(answer, tuple):
            text, status = answer
            sys.stdout.write(text)
        elif answer is not None:
            # ASCII: an agent's locale may not be UTF-8, and a file name may not be valid text.
            sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    return status


def respond(data: bytes, env: Mapping[str, str], cwd: str) -> Answer | Plain | None:
    """Returns the answer to an event, or None if there is nothing to say."""
    if env.get("QUEEN_HOOK") == "off":
        return None
    event = None
    try:
        event = events.read_event(data, cwd)
        return None if _is_asked_twice(event, env) else _answer(event, env)
    except NoHive:
        return None
    except QueenError as error:
        _report(event, env, cwd, error.message)
        if event is not None and event.files and isinstance(error, Unreachable):
            return _unguarded(event, env, error)
        if event is None or event.kind != events.SESSION_START:
            return None
        return answers.warning(event, f"queenbee: {error.message}; edits are not guarded")
    except Exception as error:
        if env.get("QUEEN_DEBUG"):
            raise
        _report(event, env, cwd, f"{type(error).__name__}: {error}")
        return None


def _is_asked_twice(event: Event, env: Mapping[str, str]) -> bool:
    """Returns whether this is Claude Code's hook in Copilot CLI, which runs those of its settings,
    too, while it also has ours of its own. Newer versions say of these alone where they are; a
    version that never did is answered every time, since an edit without an answer is not guarded.
    """
    if event.agent != events.COPILOT or "COPILOT_CLI" not in env:
        return False
    from queenbee.store import safe_open  # noqa: PLC0415 - start-up
    from queenbee.store.layout import discover  # noqa: PLC0415 - start-up

    known = os.path.join(discover(event.cwd, env).state_dir, "copilot-names-its-hooks")
    if "COPILOT_HOOK_DIR" in env:
        with suppress(OSError, QueenError):
            safe_open.write(known, b"")
        return False
    home = env.get("COPILOT_HOME") or os.path.expanduser("~/.copilot")
    folders = (os.path.join(env.get("COPILOT_PROJECT_DIR") or event.cwd, ".github"), home)
    own = any(os.path.exists(os.path.join(each, "hooks/queenbee.json")) for each in folders)
    return own and os.path.exists(known)


def _unguarded(event: Event, env: Mapping[str, str], error: QueenError) -> Answer | None:
    """Returns what becomes of an edit if nobody can be asked, as the setting `engine.hook` says."""
    from queenbee.store.layout import discover  # noqa: PLC0415 - start-up

    text = f"queenbee: {error.message}"
    passes = discover(event.cwd, env).settings.engine_hook == "warn"
    if passes or event.kind == events.AFTER_EDIT:
        return answers.warning(event, f"{text}; this edit is not guarded")
    return answers.denial(event, f"{text}; try again, or set QUEEN_HOOK=off")


def _answer_to_edit(event: Event, env: Mapping[str, str]) -> Answer | None:
    from queenbee.hook import permits  # noqa: PLC0415 - start-up

    sight = permits.look(event, env)
    if sight is not None and permits.stands(sight, event):
        return None
    from queenbee.hook import editing  # noqa: PLC0415 - start-up

    return editing.answer(event, env, sight)


def _answer(event: Event, env: Mapping[str, str]) -> Answer | Plain | None:
    if "git" in event.command:
        from queenbee.hook import shell_commands  # noqa: PLC0415 - start-up

        refusal = shell_commands.answer(event, env)
        return refusal if refusal is not None else _answer_to(event, env)
    return _answer_to(event, env)


def _answer_to(event: Event, env: Mapping[str, str]) -> Answer | Plain | None:
    if event.files:
        answer = _answer_to_edit(event, env)
        if answer is not None or event.kind != events.AFTER_EDIT:
            return answer
    if event.kind in (events.AFTER_EDIT, events.PROMPT, events.STOP):
        from queenbee.hook import news  # noqa: PLC0415 - start-up

        return news.at_stop(event, env) if event.kind == events.STOP else news.answer(event, env)
    if event.kind in (events.WORKTREE_CREATE, events.WORKTREE_REMOVE):
        from queenbee.hook import worktree_events  # noqa: PLC0415 - start-up

        return worktree_events.answer(event, env)
    if event.kind not in _OF_SESSIONS:
        return None
    from queenbee.hook import session_events  # noqa: PLC0415 - start-up

    if event.kind == events.SESSION_START:
        return session_events.begin(event, env)
    if event.kind == events.SUBAGENT_START:
        return session_events.begin_subagent(event, env)
    if event.kind == events.SUBAGENT_END:
        session_events.end_subagent(event, env)
    else:
        session_events.end(event, env)
    return None


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:  # The folder was removed while the agent ran; its events name their own.
        return os.sep


def _report(event: Event | None, env: Mapping[str, str], cwd: str, text: str) -> None:
    """Reports an error on standard error and, if there is a hive, in its log."""
    from queenbee.store.layout import discover  # noqa: PLC0415 - start-up
    from queenbee.store.logbook import note  # noqa: PLC0415 - start-up

    what = f"{event.agent} {event.name}: {text}" if event is not None else text
    with suppress(OSError, ValueError, AttributeError):  # It is closed or full.
        sys.stderr.write(f"queen-hook: {what}\n".encode(errors="replace").decode())
    try:
        note(discover(event.cwd if event else cwd, env).state_dir, "hook", what)
    except (OSError, ValueError, QueenError):
        return


if __name__ == "__main__":
    main()
