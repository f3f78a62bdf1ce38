"""`queen setup`: what each agent's files get, and that taking it out restores every byte."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hives import QuickQueen, git

from queenbee.agents import section
from queenbee.agents.agent import Surroundings
from queenbee.agents.files import file_edits
from queenbee.agents.files.file_edits import UNCHANGED
from queenbee.agents.setup import AGENTS, Setup, is_set_up, place_of
from queenbee.errors import Conflict, InvalidInput, Unreadable, Unwritable
from queenbee.git import hooks as git_hooks

Configure = Callable[..., Setup]

STRICT = {"claude", "codex", "copilot"}
"""Agents whose settings are JSON without comments: such a file is refused, see below."""
FLAT = {"cursor", "copilot"}


def contents(*folders: Path) -> dict[str, object]:
    """Returns every file below some folders: its bytes and mode, or where it leads."""
    found: dict[str, object] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            inside = path.relative_to(folder).parts
            if inside[0] in (".git", ".beads"):
                continue
            if path.is_symlink():
                found[str(path)] = os.readlink(path)
            elif path.is_file():
                found[str(path)] = (path.read_bytes(), path.stat().st_mode)
    return found


def paths(agent: str, tree: Path, home: Path) -> list[Path]:
    """Returns the files of an agent that others may have written before us."""
    place = Surroundings({}, tree=str(tree), hook="queen-hook", mcp=["queen", "mcp"], roots=["/r"])
    found = dict.fromkeys(Path(part.path) for part in AGENTS[agent].parts(place))
    ours = ("SKILL.md", "queenbee.js", "queenbee.json")
    return [path for path in found if path.name not in ours]


def foreign_settings(agent: str) -> dict[str, Any]:
    """Returns settings with somebody's hook before the same event as ours."""
    place = Surroundings({}, tree="/t", hook="queen-hook", mcp=["queen", "mcp"], roots=[])
    hook = AGENTS[agent].parts(place)[0]
    event = next(iter(getattr(hook, "wanted", {"PreToolUse": None})))
    handler = {"type": "command", "command": "check.sh"}
    group = handler if agent in FLAT else {"matcher": "Bash", "hooks": [handler]}
    return {
        "$schema": "https://example.com/s.json",
        "hooks": {event: [group], "Notification": [group]},
        "mcpServers": {"other": {"command": "other-mcp", "args": ["--x", 1.50]}},
        "mcp": {"other": {"type": "remote", "url": "https://example.com"}},
        "ünknown": [None, 1.50, " "],
    }


TOML = """\
model = "gpt" # mine

[mcp_servers.other]
command = 'other'

[sandbox_workspace_write] # of mine
network_access = true
writable_roots = [
    "/elsewhere", # kept
]

[profiles.x]
model = "y"
"""
MARKDOWN = "# Our project\n\nUse tabs.\n"


def filled(agent: str, change: Callable[[str], str], tree: Path, home: Path) -> None:
    """Writes every file of an agent as others might have."""
    for path in paths(agent, tree, home):
        text = MARKDOWN
        if path.suffix == ".json":
            text = json.dumps(foreign_settings(agent), indent=2) + "\n"
        elif path.suffix == ".toml":
            text = TOML
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(change(text).encode())


def commented(text: str) -> str:
    if not text.startswith("{"):
        return text
    text = text.replace("{\n", "{ // first\n  /* { */\n", 1).replace("]\n", "], // last\n", 1)
    return text.removesuffix("\n}\n") + ", // after\n  // end }\n}\n// below\n"


def bare(text: str) -> str:
    """Returns the least that a file can say."""
    return "{}" if text.startswith("{") else ""


def compact(text: str) -> str:
    return json.dumps(json.loads(text), separators=(",", ":")) if text.startswith("{") else text


CONFIGURATIONS: dict[str, Callable[[str], str]] = {
    "foreign hooks and servers": lambda text: text,
    "comments and trailing commas": commented,
    "carriage returns": lambda text: text.replace("\n", "\r\n"),
    "a byte order mark": lambda text: "\ufeff" + text,
    "no final line ending": lambda text: text.rstrip("\n"),
    "carriage returns and no final one": lambda text: text.replace("\n", "\r\n").rstrip(),
    "tabs": lambda text: text.replace("  ", "\t"),
    "one line": compact,
    "nothing but the file": bare,
    "blank lines at the end": lambda text: text + "\n\n",
}


@pytest.mark.some(24)
@pytest.mark.parametrize(
    ("agent", "case"),
    [
        (agent, case)
        for agent in AGENTS
        for case in CONFIGURATIONS
        if not (case.startswith("comments") and agent in STRICT)
    ],
)
def test_what_setup_adds_undo_takes_out_to_the_byte(
    agent: str, case: str, repo: Path, home: Path, configure: Configure
) -> None:
    filled(agent, CONFIGURATIONS[case], repo, home)
    before = contents(repo, home)

    configure(agent)
    after = contents(repo, home)
    assert after != before
    assert configure(agent, write=False).lacking() == []
    assert {each.state for each in configure(agent).edits} == {UNCHANGED}
    assert contents(repo, home) == after

    configure(agent, undo=True)
    assert contents(repo, home) == before


@pytest.mark.parametrize("agent", AGENTS)
def test_without_any_file_undo_leaves_none(
    agent: str, repo: Path, home: Path, configure: Configure
) -> None:
    before = contents(repo, home)
    made = configure(agent)
    assert {each.state for each in made.edits} == {file_edits.MADE}
    configure(agent, undo=True)
    assert contents(repo, home) == before
    assert sorted(os.listdir(repo)) == [".beads", ".git", "README.md"]


def test_all_agents_together_come_and_go(repo: Path, home: Path, configure: Configure) -> None:
    for agent in AGENTS:
        filled(agent, lambda text: text, repo, home)
    before = contents(repo, home)
    configure(*AGENTS)
    assert configure(write=False).lacking() == []
    configure(undo=True)
    assert contents(repo, home) == before


@pytest.mark.parametrize("agent", AGENTS)
def test_links_within_the_tree_are_followed(
    agent: str, repo: Path, home: Path, configure: Configure
) -> None:
    filled(agent, lambda text: text, repo, home)
    for number, path in enumerate(paths(agent, repo, home)):
        if path.is_relative_to(repo):
            real = repo / "dotfiles" / f"{number}{path.suffix}"
            real.parent.mkdir(exist_ok=True)
            path.rename(real)
            path.symlink_to(os.path.relpath(real, path.parent))
    before = contents(repo, home)
    configure(agent)
    links = [path for path in paths(agent, repo, home) if path.is_relative_to(repo)]
    assert all(path.is_symlink() for path in links)
    assert configure(agent, write=False).lacking() == []
    configure(agent, undo=True)
    assert contents(repo, home) == before


@pytest.mark.parametrize("agent", AGENTS)
def test_a_link_out_of_the_tree_is_refused_and_nothing_is_written(
    agent: str, repo: Path, home: Path, tmp_path: Path, configure: Configure
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    last = [path for path in paths(agent, repo, home) if path.is_relative_to(repo)][-1]
    last.parent.mkdir(parents=True, exist_ok=True)
    last.symlink_to(outside / "file")
    before = contents(repo, home, outside)
    with pytest.raises(Unreadable, match="symbolic link") as refusal:
        configure(agent)
    assert last.name in str(refusal.value)
    assert contents(repo, home, outside) == before


def test_a_folder_that_leads_out_of_the_tree_is_refused(
    repo: Path, home: Path, tmp_path: Path, configure: Configure
) -> None:
    (tmp_path / "outside").mkdir()
    (repo / ".agents").symlink_to(tmp_path / "outside")
    before = contents(repo, home)
    with pytest.raises(Unreadable, match="symbolic link"):
        configure("codex")
    assert contents(repo, home) == before
    assert os.listdir(tmp_path / "outside") == []


@pytest.mark.parametrize("agent", AGENTS)
def test_a_read_only_file_is_refused_and_nothing_is_written(
    agent: str, repo: Path, home: Path, configure: Configure
) -> None:
    filled(agent, lambda text: text, repo, home)
    last = paths(agent, repo, home)[-1]
    last.chmod(0o444)
    before = contents(repo, home)
    with pytest.raises(Unwritable, match="is read-only; nothing was changed") as refusal:
        configure(agent)
    assert str(last) in str(refusal.value)
    assert contents(repo, home) == before
    assert git_hooks.states(git_hooks.HookFolder(str(repo)))[0].state == git_hooks.ABSENT


@pytest.mark.parametrize(
    ("agent", "name", "text"),
    [
        ("claude", ".claude/settings.json", '{"hooks": []}'),
        ("claude", ".claude/settings.json", '// c\n{"a": 1,}'),
        ("claude", ".mcp.json", "{oops"),
        ("codex", ".codex/hooks.json", '{"hooks": {"PreToolUse": 1}} // c'),
        ("codex", ".codex/config.toml", "model = "),
        ("gemini", ".gemini/settings.json", '{"mcpServers": []}'),
        ("gemini", ".gemini/settings.json", '{"a": 1 /* }'),
        ("cursor", ".cursor/hooks.json", '["x"]'),
        ("opencode", "opencode.json", '{"mcp": 1}'),
        ("kilo", "kilo.json", '{"mcp": 1}'),
        ("copilot", ".github/hooks/queenbee.json", "null"),
        ("gemini", "GEMINI.md", "<!-- queenbee: begin (…) -->\nno end\n"),
    ],
)
def test_a_file_of_another_structure_is_refused_by_name_and_nothing_is_written(
    agent: str, name: str, text: str, repo: Path, home: Path, configure: Configure
) -> None:
    path = repo / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    before = contents(repo, home)
    with pytest.raises(Unreadable, match="nothing was changed") as refusal:
        configure(agent)
    assert str(path) in str(refusal.value)
    assert contents(repo, home) == before


@pytest.mark.parametrize(
    ("agent", "name", "text"),
    [
        ("claude", ".mcp.json", '{"mcpServers": {"queenbee": {"command": "mine"}}}'),
        ("codex", ".codex/config.toml", "[mcp_servers.queenbee]\ncommand = 'mine'\n"),
        ("codex", ".codex/config.toml", "mcp_servers = {}\n"),
        ("opencode", ".opencode/plugins/queenbee.js", "export const Mine = 1\n"),
        ("codex", ".agents/skills/queenbee/SKILL.md", "---\nname: queenbee\n---\n"),
    ],
)
def test_what_another_has_under_our_name_is_refused_and_kept(
    agent: str, name: str, text: str, repo: Path, home: Path, configure: Configure
) -> None:
    path = repo / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    before = contents(repo, home)
    with pytest.raises(Conflict, match="nothing was changed") as refusal:
        configure(agent)
    assert str(path) in str(refusal.value)
    configure(agent, undo=True)
    assert contents(repo, home) == before


def test_if_one_file_cannot_be_written_those_before_it_are_restored(
    repo: Path, home: Path, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled("gemini", lambda text: text, repo, home)
    before = contents(repo, home)
    write = file_edits.write_document

    def fails_at_the_skill(path: str, data: bytes) -> None:
        if path.endswith("SKILL.md"):
            raise Unwritable("the disk is full")
        write(path, data)

    monkeypatch.setattr(file_edits, "write_document", fails_at_the_skill)
    with pytest.raises(Unwritable, match="disk is full"):
        configure("gemini")
    assert contents(repo, home) == before


def test_a_hook_of_another_that_cannot_be_chained_stops_everything(
    repo: Path, home: Path, configure: Configure
) -> None:
    folder = repo / ".git" / "hooks"
    folder.mkdir(exist_ok=True)
    (folder / "pre-push").write_text("#!/bin/sh\n")
    (folder / "pre-push.before-queenbee").write_text("#!/bin/sh\n# another\n")
    before = contents(repo, home)
    with pytest.raises(Conflict, match="already exists"):
        configure("claude")
    assert contents(repo, home) == before


# What the files say


def test_our_hook_is_after_others_and_theirs_stay(
    repo: Path, home: Path, configure: Configure
) -> None:
    filled("codex", lambda text: text, repo, home)
    configure("codex")
    groups = json.loads((repo / ".codex" / "hooks.json").read_text())["hooks"]["PreToolUse"]
    assert groups[0] == {"matcher": "Bash", "hooks": [{"type": "command", "command": "check.sh"}]}
    assert groups[1]["matcher"] == "apply_patch|Bash"
    assert "queen-hook" in groups[1]["hooks"][0]["command"]


@pytest.mark.parametrize(
    ("agent", "name", "keys", "value"),
    [
        ("claude", ".mcp.json", ("mcpServers", "queenbee"), {"command": "queen", "args": ["mcp"]}),
        ("copilot", ".mcp.json", ("mcpServers", "queenbee"), {"command": "queen", "args": ["mcp"]}),
        *(
            (
                name,
                f"{name}.json",
                ("mcp", "queenbee"),
                {"type": "local", "command": ["queen", "mcp"], "enabled": True},
            )
            for name in ("opencode", "kilo")
        ),
    ],
)
def test_each_agent_gets_the_server_in_its_own_form(
    agent: str, name: str, keys: tuple[str, str], value: Any, repo: Path, configure: Configure
) -> None:
    configure(agent)
    document = json.loads((repo / name).read_text())
    assert document[keys[0]][keys[1]] == value


def test_codex_gets_the_server_and_the_folders_of_the_hive(
    repo: Path, home: Path, configure: Configure
) -> None:
    filled("codex", lambda text: text, repo, home)
    configure("codex")
    own = tomllib.loads((repo / ".codex" / "config.toml").read_text())
    assert own["mcp_servers"]["queenbee"] == {"command": "queen", "args": ["mcp"]}
    assert own["mcp_servers"]["other"] == {"command": "other"}
    users = tomllib.loads((home / ".codex" / "config.toml").read_text())
    roots = users["sandbox_workspace_write"]["writable_roots"]
    assert roots[:-1] == [str(repo / ".git" / "queenbee"), str(repo / ".beads")]
    assert all(os.path.isdir(root) for root in roots[:-1])
    assert roots[-1] == "/elsewhere"


@pytest.mark.parametrize(
    ("agent", "name"),
    [("opencode", "opencode.jsonc"), ("kilo", "kilo.jsonc"), ("kilo", ".kilo/kilo.json")],
)
def test_an_existing_configuration_with_comments_is_used(
    agent: str, name: str, repo: Path, configure: Configure
) -> None:
    (repo / name).parent.mkdir(exist_ok=True)
    (repo / name).write_text('{\n  // mine\n  "theme": "x",\n}\n')
    configure(agent)
    assert "// mine" in (repo / name).read_text()
    assert '"queenbee"' in (repo / name).read_text()
    assert not (repo / f"{agent}.json").exists()


@pytest.mark.parametrize("said", ['"allow"', '{"bash": "ask"}'])
def test_a_permission_that_is_one_word_is_no_rule_to_remove(
    said: str, repo: Path, configure: Configure
) -> None:
    before = f'{{"permission": {said}}}\n'
    (repo / "kilo.json").write_text(before)
    configure("kilo")
    configure("kilo", undo=True)
    assert (repo / "kilo.json").read_text() == before
    assert not (repo / ".kilo").exists()


def test_instructions_that_are_one_file_get_one_section(repo: Path, configure: Configure) -> None:
    (repo / "AGENTS.md").write_text(MARKDOWN)
    (repo / "CLAUDE.md").symlink_to("AGENTS.md")
    configure("claude", "codex")
    assert (repo / "AGENTS.md").read_text().count("queenbee: begin") == 1


def test_a_claude_md_that_takes_in_agents_md_stays_as_it_is(
    repo: Path, configure: Configure
) -> None:
    (repo / "CLAUDE.md").write_text("# Us\n\n@AGENTS.md\n")
    configure("claude")
    assert (repo / "CLAUDE.md").read_text() == "# Us\n\n@AGENTS.md\n"
    assert "queenbee: begin" in (repo / "AGENTS.md").read_text()


def test_what_was_written_after_our_section_stays_when_it_goes(
    repo: Path, configure: Configure
) -> None:
    (repo / "AGENTS.md").write_bytes(b"no final line ending")
    configure("codex")
    with (repo / "AGENTS.md").open("a") as file:
        file.write("\n\n## Later\n")
    configure("codex", undo=True)
    assert (repo / "AGENTS.md").read_text() == "no final line ending\n\n## Later\n"


@pytest.mark.parametrize("fence", ["```", "~~~~", "```markdown"])
def test_a_section_that_somebody_quotes_is_not_ours(
    repo: Path, configure: Configure, fence: str
) -> None:
    path, close = repo / "CLAUDE.md", fence.removesuffix("markdown")
    quoted = f"# How\n\n{fence}\n{section.BEGIN}\nmine\n{section.END}\n{close}\nmore\n"
    path.write_text(quoted)
    configure("claude")
    assert path.read_text().startswith(quoted)
    assert path.read_text().count(section.BEGIN) == 2
    before = path.read_text()
    configure("claude")
    assert path.read_text() == before
    configure("claude", undo=True)
    assert path.read_text() == quoted


def test_a_section_below_a_fence_that_does_not_end_is_ours(
    repo: Path, configure: Configure
) -> None:
    path = repo / "CLAUDE.md"
    path.write_text("# How\n\n```\nopen\n")
    configure("claude")
    configure("claude")
    assert path.read_text().count(section.BEGIN) == 1
    configure("claude", undo=True)
    assert path.read_text() == "# How\n\n```\nopen\n"


def test_a_hook_of_another_whose_name_ends_like_ours_stays(
    repo: Path, configure: Configure
) -> None:
    path = repo / ".claude" / "settings.json"
    path.parent.mkdir()
    command = "./scripts/audit-queen-hook --strict"
    group = {"matcher": "Bash", "hooks": [{"type": "command", "command": command}]}
    path.write_text(json.dumps({"hooks": {"PreToolUse": [group]}}))
    before = path.read_text()
    configure("claude")
    assert json.loads(path.read_text())["hooks"]["PreToolUse"][0] == group
    configure("claude", undo=True)
    assert path.read_text() == before


def test_an_old_section_is_replaced_where_it_is(repo: Path, configure: Configure) -> None:
    configure("codex")
    text = (repo / "AGENTS.md").read_text()
    old = text.replace("Several agents share this repository", "Old words")
    (repo / "AGENTS.md").write_text("above\n\n" + old + "below\n")
    assert [each[:1] + each[2:] for each in configure("codex", write=False).lacking()] == [
        ("old", "section")
    ]
    configure("codex")
    assert (repo / "AGENTS.md").read_text() == "above\n\n" + text + "below\n"


def test_a_hook_at_another_place_is_old_and_replaced(repo: Path, configure: Configure) -> None:
    configure("cursor")
    path = repo / ".cursor" / "hooks.json"
    path.write_text(path.read_text().replace("queen-hook", "/old/queen-hook"))
    assert [each[0] for each in configure("cursor", write=False).lacking()] == ["old"]
    configure("cursor")
    assert "/old" not in path.read_text()
    configure("cursor", undo=True)
    assert not path.exists()


# Two repositories of one user


def test_the_folders_of_two_repositories_come_and_go_in_any_order(
    repo: Path, home: Path, tmp_path: Path, configure: Configure
) -> None:
    other = tmp_path / "other"
    git(tmp_path, "init", "-q", "other")
    (other / ".beads").mkdir()
    config = home / ".codex" / "config.toml"

    def roots() -> list[str]:
        said = tomllib.loads(config.read_text())["sandbox_workspace_write"]["writable_roots"]
        return list(said)

    configure("codex")
    configure("codex", cwd=other)
    folders = [[str(tree / ".git" / "queenbee"), str(tree / ".beads")] for tree in (other, repo)]
    assert roots() == [*folders[0], *folders[1]]
    configure("codex", undo=True)
    assert roots() == folders[0]
    configure("codex", cwd=other, undo=True)
    assert not config.exists()


@pytest.mark.parametrize(
    "text",
    [
        "[sandbox_workspace_write]",
        "[sandbox_workspace_write]\r\nnetwork_access = true\r\n",
        "[sandbox_workspace_write]\nwritable_roots = []\n",
        "[ sandbox_workspace_write ]\nwritable_roots=['/x']\n[next]\n",
        "[x]\nwritable_roots = ['/no']\n\n[sandbox_workspace_write]\n[y]\nwritable_roots = 1\n",
    ],
)
def test_the_folders_are_added_to_any_list(
    text: str, repo: Path, home: Path, configure: Configure
) -> None:
    config = home / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_bytes(text.encode())
    configure("codex")
    said = tomllib.loads(config.read_bytes().decode())
    assert said["sandbox_workspace_write"]["writable_roots"][1] == str(repo / ".beads")
    configure("codex", undo=True)
    assert config.read_bytes() == text.encode()


@pytest.mark.parametrize(
    "text",
    [
        "sandbox_workspace_write = { network_access = true }\n",
        'sandbox_workspace_write.writable_roots = ["/x"]\n',
    ],
)
def test_a_list_that_cannot_be_changed_safely_is_refused_with_the_line_to_add(
    text: str, repo: Path, home: Path, configure: Configure
) -> None:
    config = home / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text(text)
    with pytest.raises(Conflict) as refusal:
        configure("codex")
    folders = [str(repo / ".git" / "queenbee"), str(repo / ".beads")]
    assert f"writable_roots = {json.dumps(folders)}" in str(refusal.value.hint)
    assert config.read_text() == text


# Which agents


@pytest.mark.parametrize(
    ("agent", "trace"),
    [
        ("claude", "repo/.claude/"),
        ("claude", "home/.claude/"),
        ("codex", "home/.codex/"),
        ("gemini", "repo/GEMINI.md"),
        ("cursor", "repo/.cursor/"),
        ("opencode", "repo/opencode.jsonc"),
        ("opencode", "home/.config/opencode/"),
        ("kilo", "repo/.kilo/"),
        ("kilo", "home/.config/kilo/"),
        ("copilot", "home/.copilot/"),
    ],
)
def test_an_agent_is_found_by_what_it_leaves(
    agent: str, trace: str, tmp_path: Path, configure: Configure
) -> None:
    if trace.endswith("/"):
        (tmp_path / trace).mkdir(parents=True)
    else:
        (tmp_path / trace).write_text("{}")
    assert [each.name for each in configure(write=False).agents] == [agent]


def test_an_agent_is_found_by_its_program(
    tmp_path: Path, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "gemini"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = configure(write=False)
    assert [each.name for each in found.agents] == ["gemini"]
    assert found.found["gemini"] == "gemini is on the PATH"


def test_an_unknown_agent_is_refused(configure: Configure) -> None:
    with pytest.raises(InvalidInput, match="'emacs'"):
        configure("emacs")


def test_what_two_agents_share_stays_until_both_are_gone(repo: Path, configure: Configure) -> None:
    configure("codex", "cursor")
    configure("codex", undo=True)
    assert not (repo / ".codex").exists()
    assert (repo / ".agents" / "skills" / "queenbee" / "SKILL.md").exists()
    assert configure("cursor", write=False).lacking() == []
    configure("cursor", undo=True)
    assert not (repo / ".agents").exists()
    assert not (repo / "AGENTS.md").exists()


def test_taking_out_one_agent_leaves_the_guard(repo: Path, configure: Configure) -> None:
    configure("codex")
    folder = git_hooks.HookFolder(str(repo))
    configure("codex", undo=True)
    assert git_hooks.states(folder)[0].state == git_hooks.INSTALLED
    configure(undo=True)
    assert git_hooks.states(folder)[0].state == git_hooks.ABSENT


def test_a_guard_that_the_user_installed_stays(
    repo: Path, configure: Configure, quick: QuickQueen
) -> None:
    folder = git_hooks.HookFolder(str(repo))
    git_hooks.install(folder)
    runner, hooks = Path(folder.runner), repo / ".git" / "hooks"
    before = runner.read_bytes(), contents(hooks)
    configure("codex")
    ran = quick("setup", "--undo")
    assert ran.code == 0
    assert "the git guard stays, as you installed it: queen guard uninstall" in ran.err
    assert (runner.read_bytes(), contents(hooks)) == before


def test_a_guard_is_the_users_once_he_installs_it_himself(repo: Path, configure: Configure) -> None:
    folder = git_hooks.HookFolder(str(repo))
    configure("codex")
    configure("codex")
    assert folder.of_setup
    git_hooks.install(folder)
    configure("codex")
    assert configure(undo=True).guard_stays
    assert git_hooks.states(folder)[0].state == git_hooks.INSTALLED


def test_where_there_is_no_guard_undo_says_nothing_of_it(repo: Path, configure: Configure) -> None:
    assert configure(undo=True).notes() == []
    configure("codex")
    assert configure(undo=True).notes() == []
    assert configure(undo=True).notes() == []


# For a user


@pytest.mark.parametrize("agent", AGENTS)
def test_a_users_settings_cover_all_repositories_and_none_is_touched(
    agent: str, repo: Path, home: Path, configure: Configure
) -> None:
    before, nothing = contents(repo), contents(home)
    configure(agent, user=True)
    assert contents(repo) == before
    assert not [path for path in contents(home) if path.endswith(("AGENTS.md", "CLAUDE.md"))]
    place = place_of(str(repo), os.environ, user=True)
    assert is_set_up(AGENTS[agent], place)
    configure(agent, user=True, undo=True)
    assert contents(home) == nothing


def test_a_home_elsewhere_is_used(
    home: Path, tmp_path: Path, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "cx"))
    configure("codex", user=True)
    assert (tmp_path / "cx" / "hooks.json").exists()
    assert (tmp_path / "cx" / "config.toml").exists()
    assert not (home / ".codex").exists()


# The command


def test_the_command_sets_up_checks_and_undoes(quick: QuickQueen, repo: Path) -> None:
    (repo / ".gemini").mkdir()
    ran = quick("setup", "--check", "--json")
    assert ran.code == 1
    assert {each["state"] for each in ran.json["lacking"]} == {"missing"}
    ran = quick("setup", "--dry-run", "--json")
    assert ran.code == 0
    assert "+## QueenBee\n" in "".join(each["diff"] for each in ran.json["files"])
    assert not (repo / "GEMINI.md").exists()
    ran = quick("setup", "--json")
    assert ran.code == 0
    assert [each["name"] for each in ran.json["agents"]] == ["gemini"]
    assert {each["state"] for each in ran.json["files"]} == {"made"}
    assert quick("setup", "--check").code == 0
    assert quick("guard", "status").code == 0
    assert quick("setup", "--undo").code == 0
    assert quick("setup", "--check", "gemini").code == 1
    assert quick("guard", "status").code == 1


def test_it_says_what_becomes_of_gits_hooks(quick: QuickQueen, repo: Path) -> None:
    folder = f"the hooks in {repo / '.git' / 'hooks'}\n"
    (repo / ".gemini").mkdir()
    assert f"the git guard would be added to {folder}" in quick("setup", "--dry-run").err
    assert f"the git guard was added to {folder}" in quick("setup").err
    assert "git guard" not in quick("setup").err
    assert (
        f"the git guard would be removed from {folder}" in quick("setup", "--undo", "--dry-run").err
    )
    assert f"the git guard was removed from {folder}" in quick("setup", "--undo").err
    assert "git guard" not in quick("setup", "--undo").err


def test_without_an_agent_the_command_names_them_and_adds_the_guard(quick: QuickQueen) -> None:
    checked = quick("setup", "--check")
    assert checked.code == 1
    assert "no agent was found here" in checked.err
    ran = quick("setup")
    assert ran.code == 0
    assert "claude, codex, gemini, cursor, opencode, copilot, qwen, kilo" in ran.err
    assert "the git guard was added to" in ran.err
    assert quick("guard", "status").code == 0
    assert quick("setup", "--user").code == 4


def test_a_refusal_names_the_file_and_exits_7(quick: QuickQueen, repo: Path) -> None:
    (repo / ".codex").mkdir()
    (repo / ".codex" / "hooks.json").write_text("{oops")
    ran = quick("setup", "codex", "claude")
    assert ran.code == 7
    assert ".codex/hooks.json is not JSON" in ran.err
    assert not (repo / ".claude").exists()


def test_a_broken_hive_does_not_keep_anyone_from_undoing(
    quick: QuickQueen, repo: Path, home: Path
) -> None:
    before = contents(repo, home)
    quick("setup", "gemini")
    (repo / ".beads" / "redirect").write_text("nowhere")
    assert quick("setup", "gemini").code == 7
    assert quick("setup", "--undo").code == 0
    (repo / ".beads" / "redirect").unlink()
    assert contents(repo, home) == before


def test_check_stands_alone(quick: QuickQueen) -> None:
    assert quick("setup", "--check", "--undo").code == 2
