"""What an agent will ignore: read in the files in which real agents keep what they were told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from queenbee.agents.setup import Setup

Configure = Callable[..., Setup]

NOT_TRUSTED = "is not trusted"


def said(wanted: Setup) -> str:
    return "\n".join(f"{each.what}: {each.why} [{each.cure}]" for each in wanted.ignored())


def put(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def trust(agent: str, home: Path, tree: Path) -> None:
    """Writes what an agent writes when its user trusts a folder."""
    if agent == "claude":
        put(home / ".claude.json", {"projects": {str(tree): {"hasTrustDialogAccepted": True}}})
    elif agent == "codex":
        table = f'[projects."{tree}"]\ntrust_level = "trusted"\n'
        known = home / ".codex" / "config.toml"
        put(known, (known.read_text() if known.exists() else "") + table)
    elif agent == "gemini":
        put(home / ".gemini" / "trustedFolders.json", {str(tree): "TRUST_FOLDER"})
    else:
        note = "// This file is managed automatically.\n"
        put(home / ".copilot" / "config.json", note + json.dumps({"trustedFolders": [str(tree)]}))


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "copilot"])
def test_a_folder_that_is_not_trusted_is_named_until_it_is(
    agent: str, configure: Configure, home: Path, repo: Path
) -> None:
    wanted = configure(agent)
    assert NOT_TRUSTED in said(wanted)
    trust(agent, home, repo.parent)
    assert NOT_TRUSTED not in said(wanted)
    trust(agent, home, repo / "src")
    if agent not in ("codex",):
        assert NOT_TRUSTED in said(wanted)


def test_a_parent_that_gemini_trusts_counts(configure: Configure, home: Path, repo: Path) -> None:
    put(home / ".gemini" / "trustedFolders.json", {str(repo.parent / "x"): "TRUST_PARENT"})
    assert NOT_TRUSTED not in said(configure("gemini"))
    put(home / ".gemini" / "trustedFolders.json", {str(repo): "DO_NOT_TRUST"})
    assert NOT_TRUSTED in said(configure("gemini"))
    put(home / ".gemini" / "settings.json", {"security": {"folderTrust": {"enabled": False}}})
    assert NOT_TRUSTED not in said(configure("gemini"))


def test_hooks_that_nobody_has_reviewed_are_named(
    configure: Configure, home: Path, repo: Path
) -> None:
    wanted = configure("codex")
    assert "hooks: they are new and not reviewed [enter /hooks in codex" in said(wanted)
    path = repo / ".codex" / "hooks.json"
    state = "\n[hooks.state]\n"
    for event in json.loads(path.read_text())["hooks"]:
        name = "".join(f"_{char.lower()}" if char.isupper() else char for char in event)
        state += f'[hooks.state."{path}:{name.lstrip("_")}:0:0"]\ntrusted_hash = "sha256:0"\n'
    config = home / ".codex" / "config.toml"
    config.write_text(config.read_text() + state)
    assert "reviewed" not in said(wanted)


@pytest.mark.parametrize("agent", ["claude", "gemini", "qwen", "kilo"])
def test_rules_are_proposed_and_added_only_if_asked_for(
    agent: str, installed: None, configure: Configure, home: Path, repo: Path
) -> None:
    wanted = configure(agent)
    assert f"[queen setup {agent} --allow]" in said(wanted)
    name = "kilo.json" if agent == "kilo" else f".{agent}/settings.json"
    settings = repo / name
    before = settings.read_bytes()
    assert b"queen:*" not in before and b"queen *" not in before

    allowed = Setup(wanted.place, str(repo), [agent], allow=True)
    allowed.write()
    assert "--allow" not in said(allowed)
    again = Setup(wanted.place, str(repo), [agent], allow=True)
    assert again.lacking() == configure(agent).lacking() == []
    assert {each.state for each in again.edits} == {"unchanged"}

    text = settings.read_text()
    configure(agent, undo=True)
    assert not settings.exists()
    put(home / (".config/kilo/kilo.json" if agent == "kilo" else name), text)
    assert "--allow" not in said(configure(agent))


def test_a_rule_of_the_users_own_in_the_same_object_stays(configure: Configure, repo: Path) -> None:
    mine = '{"permission": {"bash": {"*": "ask", "queen *": "deny"}}}\n'
    put(repo / "kilo.json", mine)
    wanted = Setup(configure("kilo", write=False).place, str(repo), ["kilo"], allow=True)
    wanted.write()
    asked = json.loads((repo / "kilo.json").read_text())["permission"]["bash"]
    assert asked == {"*": "ask", "queen *": "allow"}
    configure("kilo", undo=True)
    assert (repo / "kilo.json").read_text() == mine


def test_a_version_that_lacks_something_is_named(
    configure: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "npm" / "gemini-cli"
    program = package / "dist" / "gemini"
    put(program, "#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    for version, old in (
        ("0.25.3", True),
        ("0.26.0-nightly", False),
        ("1.0.0", False),
        ("x", False),
    ):
        put(package / "package.json", {"version": version})
        assert ("version 0.25.3 has none, only 0.26" in said(configure("gemini"))) is old


def test_files_that_cannot_be_read_are_no_trust_and_no_error(
    configure: Configure, home: Path
) -> None:
    for agent, name in (("claude", ".claude.json"), ("gemini", ".gemini/trustedFolders.json")):
        for content in ("", "[]", "{", '{"projects": [1], "x": 3}', "\xff"):
            put(home / name, content)
            assert NOT_TRUSTED in said(configure(agent))
