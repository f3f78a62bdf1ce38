"""Where a client works, and under which name: one hive for each root of its workspace."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from queenbee.core.names import part_of, session_name
from queenbee.core.text import quotation, shortened
from queenbee.errors import InvalidInput, NoHive, QueenError, Unreadable
from queenbee.library.hive import Hive
from queenbee.store.droids import agent_sessions, identity, session_names
from queenbee.store.files import stamp_of
from queenbee.store.layout import Layout, discover
from queenbee.store.settings import FILE_NAME


@dataclass(frozen=True)
class Session:
    """One session of a client: what the agent is called, and the id that tells it from others."""

    agent: str
    identifier: str
    in_request: bool = False
    """Whether the request says which session it is."""

    @property
    def name(self) -> str | None:
        """The name made for the session, such as `claude-1b4e28ba`: that of its hooks, too."""
        return session_name(self.agent, self.identifier)


class Workspace:
    """The roots of one client's workspace, and the hive and the name that it has in each.

    Safe for threads.
    """

    def __init__(
        self,
        env: Mapping[str, str],
        cwd: str,
        *,
        droid: str | None = None,
        beads_dir: str | None = None,
    ) -> None:
        self.env = env
        self._cwd = cwd
        self._droid = droid
        """Who acts, if the command line says so."""
        self.beads_dir = beads_dir
        """The hive to use, if the command line says so."""
        self._own_id = uuid4().hex
        """Tells this client from others if it names no session."""
        self._mutex = threading.Lock()
        self._holds: dict[str, tuple[str, int]] = {}
        """By worktree, the session that has the name which the worktree remembers."""
        self._open: dict[tuple[str, str | None], tuple[object, Hive]] = {}

    def session(self, client: str | None, meta: Mapping[str, object] | None) -> Session:
        """Returns the session that the request or the environment names, or this process's own."""
        turn = (meta or {}).get("x-codex-turn-metadata")
        thread = turn.get("session_id") if isinstance(turn, dict) else (meta or {}).get("threadId")
        if isinstance(thread, str) and thread:
            return Session("codex", thread, in_request=True)
        agent, identifier = session_names.id_in(self.env)
        return Session(agent, identifier) if identifier else Session(_plain(client), self._own_id)

    def roots(self, uris: Sequence[str]) -> list[str]:
        """Returns the working trees with a hive to choose from, or else the working directory."""
        found: dict[tuple[str, str], str] = {}
        for folder in filter(None, map(_folder_of, uris)):
            try:
                layout = self._discover(folder)
            except NoHive:
                continue
            except QueenError:
                # What is wrong with it is said when it is used.
                found.setdefault((folder, folder), folder)
            else:
                found.setdefault((layout.beads_dir, layout.tree), folder)
        return list(found.values()) or [self._cwd]

    def chosen(self, roots: Sequence[str], given: str | None) -> str:
        """Returns the root that was asked for, or the only one. Raises `InvalidInput`."""
        if given is None and len(roots) == 1:
            return roots[0]
        if given in roots:
            return str(given)
        known = ", ".join(roots)
        if given is None:
            raise InvalidInput(
                "this workspace has several hives", hint=f"pass root, one of: {known}"
            )
        raise InvalidInput(
            f"{quotation(shortened(given))} is not a root of this workspace",
            hint=f"pass root, one of: {known}",
        )

    def name(self, session: Session, layout: Layout | None) -> str | None:
        """Returns who acts: as the command line, the environment or the worktree says, or by the
        name of the session, which is that of its hooks.

        The name that a worktree remembers is the first session's; a second one that is started
        there is `NAME-PART`, as its hooks are. A hive that accepts only listed droids accepts no
        such name; then nobody acts. Raises `InvalidInput` for a malformed name.
        """
        if layout is None:
            return self._droid or session.name
        found = identity.find_actor(layout, self.env, self._droid)
        if found is not None and found[1] != layout.identity_path:
            return found[0]
        noted = self._noted(session, layout)
        if noted is not None:
            agent, part, first = noted.agent or session.agent, noted.part, noted.first
        else:
            agent, part = session.agent, part_of(session.identifier)
            first = found is None or self._holds_it(session, layout)
        return session_names.name_of(layout, agent, part, first=first)[0]

    def hive(self, session: Session, root: str) -> Hive:
        """Returns the hive of a root, open since an earlier call if its settings are the same.

        One thread at a time may use it. Raises `NoHive` and `Unreadable`.
        """
        layout = self._discover(root)
        name = self.name(session, layout)
        settings = stamp_of(os.path.join(layout.beads_dir, FILE_NAME))
        stamp = (layout.beads_dir, layout.state_dir, settings)
        with self._mutex:
            known, hive = self._open.get((root, name), (None, None))
            if hive is None or known != stamp or not _is_here(hive):
                if hive is not None:
                    hive.close()
                hive = self._opened(layout, root, name)
                self._open[root, name] = (stamp, hive)
        return hive

    def own_hive(self, session: Session, root: str) -> Hive:
        """Returns a hive of a root for one call, which closes it. Raises as `hive` does."""
        layout = self._discover(root)
        return self._opened(layout, root, self.name(session, layout))

    def close(self) -> None:
        """Closes the hives, and lets others have the names that worktrees remember."""
        with self._mutex:
            for _, hive in self._open.values():
                hive.close()
            for _, hold in self._holds.values():
                os.close(hold)
            self._open.clear()
            self._holds.clear()

    def _discover(self, folder: str) -> Layout:
        return discover(folder, self.env, beads_dir=self.beads_dir)

    def _opened(self, layout: Layout, root: str, name: str | None) -> Hive:
        secrets = self.env.get("QUEEN_ALLOW_SECRET") == "1"
        hive = Hive(layout, actor=name, cwd=root, allow_secrets=secrets)
        hive.env = self.env
        return hive

    def _noted(self, session: Session, layout: Layout) -> agent_sessions.Session | None:
        """Returns what the hooks of this session have noted of it: Codex runs several sessions with
        one server, and says in each request which one it is.
        """
        if session.in_request:
            return agent_sessions.noted(layout, session.identifier)
        return session_names.around(layout, self.env)

    def _holds_it(self, session: Session, layout: Layout) -> bool:
        """Returns whether the name that the worktree remembers is this session's to use."""
        path = layout.identity_path
        with self._mutex:
            if path in self._holds:
                return self._holds[path][0] == session.identifier
            try:
                hold = identity.hold(layout)
            except (OSError, Unreadable):
                # It cannot be locked here, so that nobody can tell: the worktree has the last word.
                return True
            if hold is not None:
                self._holds[path] = (session.identifier, hold)
            return hold is not None


def _plain(client: str | None) -> str:
    """Returns a client's name as the beginning of a droid's: `Claude Code` is `claude-code`."""
    words = "".join(char if char.isascii() and char.isalnum() else " " for char in client or "")
    return "-".join(words.lower().split())


def _folder_of(uri: str) -> str | None:
    """Returns the folder that a `file:` URI names, or None."""
    try:
        parts = urlsplit(uri)
        path = unquote(parts.path, errors="surrogateescape")
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or "\0" in path:
        return None
    return os.path.realpath(path) if os.path.isdir(path) else None


def _is_here(hive: Hive) -> bool:
    try:
        hive.layout.refuse_if_moved()
    except QueenError:
        return False
    return True
