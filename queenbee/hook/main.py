"""The entry point of `queen-hook`: one event of an agent on standard input, one answer back.

The exit status is 0 whatever happens: agents read some other ones as "block". A fault of ours
never stops an agent; it is logged in `hook.log` beside the journal and told on standard error.
The one thing that stops an edit is that the hive says another droid holds the file.
"""

from __future__ import annotations

import json
import os
import sys

from queenbee.errors import Held, NoHive, QueenError
from queenbee.hook import answers, events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.hook.answers import Answer
    from queenbee.hook.events import Event
    from queenbee.services.hive import Services
    from queenbee.services.leases.reservations import PathStatus
    from queenbee.store.layout import Layout

_USAGE = """\
queen-hook reads one event of a coding agent, as JSON, on standard input and answers it.
Agents run it; `queen hooks install claude` tells Claude Code to. See docs/enforcement.md.
QUEEN_HOOK=off in the environment of the agent turns it off.
"""

_LOCK_TIMEOUT_S = 2.0
"""Of a busy hive: longer than any turn at writing takes, shorter than an agent's patience."""


def main() -> None:
    """Answers the event on standard input."""
    if len(sys.argv) > 1 or os.isatty(0):
        sys.stdout.write(_USAGE)
    else:
        answer = respond(sys.stdin.buffer.read(), os.environ, _cwd())
        if answer is not None:
            # ASCII: an agent's locale may not be UTF-8, and a name may not be text at all.
            sys.stdout.write(json.dumps(answer) + "\n")
    try:
        sys.stdout.flush()
    finally:
        # Every file is closed by now; taking the interpreter apart would cost 3 ms of 28.
        os._exit(0)


def respond(data: bytes, env: Mapping[str, str], cwd: str) -> Answer | None:
    """Returns the answer to an event, or None where there is nothing to say."""
    if env.get("QUEEN_HOOK") == "off":
        return None
    event = None
    try:
        event = events.read_event(data, cwd)
        return _answer(event, env)
    except NoHive:
        return None
    except QueenError as error:
        _warn(event, env, cwd, error.message)
        if event is None or event.kind != events.SESSION_START:
            return None
        return answers.warning(event, f"queenbee: {error.message}; edits are not guarded")
    except Exception as error:
        if env.get("QUEEN_DEBUG"):
            raise
        _warn(event, env, cwd, f"{type(error).__name__}: {error}")
        return None


def _answer(event: Event, env: Mapping[str, str]) -> Answer | None:
    if event.kind in (events.BEFORE_EDIT, events.AFTER_EDIT):
        return _edit(event, env)
    if event.kind == events.SESSION_START:
        return _session_start(event, env)
    if event.kind == events.SESSION_END:
        _session_end(event, env)
    return None


def _edit(event: Event, env: Mapping[str, str]) -> Answer | None:
    from queenbee.services.leases import edits

    for places, files in _by_hive(event, env):
        paths = edits.changed_paths(places, files)
        if not paths:
            continue
        hive = _open(places, env, event)
        statuses = edits.look(hive.reservations, paths)
        # What another holds is said before anything is written: a fault in writing must not
        # let the edit pass.
        refusal = _refusal(event, hive, statuses)
        if refusal is not None:
            return refusal
        if hive.actor_or_none is not None:
            try:
                edits.keep(hive.reservations, statuses, event.session)
            except Held:
                return _refusal(event, hive, edits.look(hive.reservations, paths))
    return None


def _refusal(event: Event, hive: Services, statuses: Sequence[PathStatus]) -> Answer | None:
    held = [each for each in statuses if each.status == "held"]
    if not held:
        return None
    from queenbee.hook import refusals

    return refusals.answer(event, hive, held)


def _is_file_name(text: str) -> bool:
    """Returns whether a file can have this name at all: one that cannot is not edited either,
    and must not keep the other files of the same edit from being looked at.
    """
    try:
        return b"\0" not in os.fsencode(text)
    except ValueError:
        return False


def _by_hive(event: Event, env: Mapping[str, str]) -> list[tuple[Layout, list[str]]]:
    """Returns the hives that an edit touches, each with its files: one, as good as always."""
    found: dict[tuple[str, str], tuple[Layout, list[str]]] = {}
    for file in filter(_is_file_name, event.files):
        places = _hive_of(file, event, env)
        if places is not None:
            found.setdefault((places.beads_dir, places.tree), (places, []))[1].append(file)
    return list(found.values())


def _hive_of(file: str, event: Event, env: Mapping[str, str]) -> Layout | None:
    """Returns the hive of the tree that a file lies in, wherever the session runs, or None."""
    from queenbee.store.layout import discover, git_tree

    folder = os.path.dirname(os.path.realpath(file))
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    if env.get("BEADS_DIR"):
        # It speaks of the session's repository, and is relative to where the session runs.
        here, there = git_tree(os.path.realpath(event.cwd)), git_tree(folder)
        if (here and here.common_dir) != (there and there.common_dir):
            return None
        env = {**env, "BEADS_DIR": os.path.join(event.cwd, env["BEADS_DIR"])}
    try:
        return discover(folder, env)
    except NoHive:
        return None


def _open(places: Layout, env: Mapping[str, str], event: Event) -> Services:
    from queenbee.hook.sessions import find_actor
    from queenbee.services.hive import Services

    places.settings.lock_timeout_s = min(places.settings.lock_timeout_s, _LOCK_TIMEOUT_S)
    return Services(places, actor=find_actor(places, env, event).name)


def _session_start(event: Event, env: Mapping[str, str]) -> Answer:
    from queenbee.hook import sessions
    from queenbee.services.hive import Services
    from queenbee.store.layout import discover

    places = discover(event.cwd, env)
    actor = sessions.find_actor(places, env, event)
    if actor.derived and actor.name is not None:
        sessions.remember_name(env, actor.name)
    return answers.context(event, sessions.briefing(Services(places, actor=actor.name), actor))


def _session_end(event: Event, env: Mapping[str, str]) -> None:
    from queenbee.services.leases.edits import end_session
    from queenbee.store.layout import discover

    hive = _open(discover(event.cwd, env), env, event)
    if hive.actor_or_none is not None and event.session:
        end_session(hive.reservations, event.session)


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:  # It was removed under the agent; its events name their own.
        return os.sep


def _warn(event: Event | None, env: Mapping[str, str], cwd: str, text: str) -> None:
    """Says what went wrong on standard error and, as far as there is one, in the hive's log."""
    from queenbee.store.layout import discover
    from queenbee.store.logbook import note

    what = f"{event.agent} {event.name}: {text}" if event is not None else text
    sys.stderr.write(f"queen-hook: {what}\n".encode(errors="replace").decode())
    try:
        note(discover(event.cwd if event else cwd, env).state_dir, "hook", what)
    except (OSError, ValueError, QueenError):
        return


if __name__ == "__main__":
    main()
