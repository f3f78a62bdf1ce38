"""What an agent will ignore of what is set up, why, and what cures it.

An agent says none of this itself: it starts without hooks and tools, or asks at each command. Read
in the files that the agents write; none of them is run.
"""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from queenbee.agents.agent import Agent, Surroundings
from queenbee.agents.files.allow_rules import AllowRules
from queenbee.documents.json_text import loads
from queenbee.errors import QueenError
from queenbee.store.whole_files import read_document

Finding = tuple[str, str, str, str]
"""What is ignored, why, the cure, and what is at stake."""

_UNASKED = "queen and its tools, unless you say yes"
_ALL = "hooks and the MCP server"
_FOLDER = "the folder is not trusted"
COPILOT_RULES = "copilot --allow-tool queenbee --allow-tool 'shell(queen:*)'"
_SINCE = {"gemini": ((0, 26), "hooks"), "codex": ((0, 145), "the end of a session")}
"""Since which version an agent has what, where that is known."""


CONNECTION, RULES, WORK = "connection", "rules", "work"
"""What is at stake: that it knows of the hive; some of what it may do unasked; all of that."""


@dataclass(frozen=True)
class Ignored:
    """One thing that an agent will ignore."""

    agent: str
    what: str
    why: str
    cure: str
    stake: str

    def __str__(self) -> str:
        return f"{self.agent}: {self.what}: {self.why} [{self.cure}]"


def ignored(agent: Agent, place: Surroundings) -> Iterator[Ignored]:
    """Yields what an agent will ignore in a place."""
    found = list(_of_version(agent, place))
    if agent.name in _TRUST and place.tree is not None:
        found += _TRUST[agent.name](place, place.tree)
    if agent.rules is not None and not _allowed(agent.rules, place):
        shown = ", ".join(agent.rules(place).rules)
        cure = f"queen setup {agent.name} --allow"
        found.append((_UNASKED, f"no rule allows {shown}", cure, WORK))
    for each in found:
        yield Ignored(agent.title, *each)


def _of_version(agent: Agent, place: Surroundings) -> Iterator[Finding]:
    version = _version(agent.programs, place) if agent.name in _SINCE else None
    if version is not None and tuple(version) < _SINCE[agent.name][0]:
        least, what = _SINCE[agent.name]
        known = ".".join(map(str, least))
        yield (
            what,
            f"version {'.'.join(map(str, version))} has none, only {known}",
            "update it",
            CONNECTION,
        )


def _of_claude(place: Surroundings, tree: str) -> Iterator[Finding]:
    folder = place.env.get("CLAUDE_CONFIG_DIR") or place.home
    projects = _member(_json(os.path.join(folder, ".claude.json")), "projects")
    trusted = [each for each in projects if _member(projects, each).get("hasTrustDialogAccepted")]
    if not _covers(trusted, tree):
        yield "the repository's allow rules", _FOLDER, _trust("claude"), RULES


def _of_codex(place: Surroundings, tree: str) -> Iterator[Finding]:
    config = _toml(place.in_home(".codex/config.toml", "CODEX_HOME"))
    projects = _member(config, "projects")
    trusted = [each for each in projects if _member(projects, each).get("trust_level") == "trusted"]
    if not _covers(trusted, tree):
        why = "the project is not trusted"
        yield _ALL, why, _trust("codex"), CONNECTION
        yield "every edit without a screen", why, _trust("codex"), WORK
    path = os.path.join(tree, ".codex", "hooks.json")
    reviewed = {
        each.removeprefix(f"{path}:").partition(":")[0]
        for each in _member(_member(config, "hooks"), "state")
        if each.startswith(f"{path}:")
    }
    wanted = {re.sub(r"(?<!^)(?=[A-Z])", "_", each).lower() for each in _events(path)}
    if wanted - reviewed:
        cure = "enter /hooks in codex, and trust them"
        yield "hooks", "they are new and not reviewed", cure, CONNECTION


def _of_gemini(place: Surroundings, tree: str) -> Iterator[Finding]:
    settings = _json(place.in_home(".gemini/settings.json"))
    trust = _member(_member(settings, "security"), "folderTrust")
    listed = _json(place.in_home(".gemini/trustedFolders.json"))
    trusted = [each for each, said in listed.items() if said == "TRUST_FOLDER"]
    trusted += [os.path.dirname(each) for each, said in listed.items() if said == "TRUST_PARENT"]
    if trust.get("enabled") is not False and not _covers(trusted, tree):
        yield _ALL, _FOLDER, _trust("gemini"), CONNECTION


def _of_copilot(place: Surroundings, tree: str) -> Iterator[Finding]:
    config = _json(place.in_home(".copilot/config.json", "COPILOT_HOME"))
    listed = [config.get(key) for key in ("trusted_folders", "trustedFolders")]
    trusted = [each for some in listed if isinstance(some, list) for each in some]
    if not _covers(trusted, tree):
        cure = "copilot --trust-folder, or run copilot here once, and trust it"
        yield _ALL, _FOLDER, cure, CONNECTION
    yield _UNASKED, "no file has its rules", COPILOT_RULES, WORK


_TRUST: dict[str, Callable[[Surroundings, str], Iterator[Finding]]] = {
    "claude": _of_claude,
    "codex": _of_codex,
    "gemini": _of_gemini,
    "copilot": _of_copilot,
}


def _trust(program: str) -> str:
    return f"run {program} here once, and trust it"


def _covers(folders: Sequence[object], tree: str) -> bool:
    """Returns whether a working tree is one of these folders, or below one."""
    real = os.path.realpath(tree)
    known = [os.path.realpath(each) for each in folders if isinstance(each, str)]
    return any(real == each or real.startswith(each.rstrip(os.sep) + os.sep) for each in known)


def _allowed(rules_in: Callable[[Surroundings], AllowRules], place: Surroundings) -> bool:
    """Returns whether a file has all of the rules: the one that we write, or one of the user's."""
    rules = rules_in(place)
    local = os.path.join(os.path.dirname(rules.path), "settings.local.json")
    for path in (rules.path, local, rules_in(replace(place, tree=None)).path):
        with suppress(QueenError, OSError, ValueError):
            if not rules.lacking(read_document(path).decode()):
                return True
    return False


def _events(path: str) -> list[str]:
    return [
        each
        for each, groups in _member(_json(path), "hooks").items()
        if "queen-hook" in str(groups)
    ]


def _version(programs: Sequence[str], place: Surroundings) -> list[int] | None:
    """Returns the version of a program that npm has installed, or None."""
    path = next(
        filter(None, (shutil.which(each, path=place.env.get("PATH")) for each in programs)), None
    )
    folder = os.path.dirname(os.path.realpath(path)) if path else os.sep
    while folder != os.path.dirname(folder):
        said = _json(os.path.join(folder, "package.json")).get("version")
        if isinstance(said, str):
            return [int(each) for each in re.findall(r"\d+", said)[:3]]
        folder = os.path.dirname(folder)
    return None


def _member(value: dict[str, object], key: str) -> dict[str, object]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _json(path: str) -> dict[str, object]:
    with suppress(QueenError, OSError, ValueError, RecursionError):
        found = loads(read_document(path).decode(), comments=True)
        return found if isinstance(found, dict) else {}
    return {}


def _toml(path: str) -> dict[str, object]:
    with suppress(QueenError, OSError, ValueError, RecursionError):
        return tomllib.loads(read_document(path).decode())
    return {}
