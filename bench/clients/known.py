"""The clients that are run: their packages and versions, how they start, what their tools are."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.clients.wires import Call

KEY = "made-up"
"""Clients refuse to start without a key; nobody checks it."""


@dataclass(frozen=True)
class Start:
    """What a client is started for."""

    prompt: str
    address: str
    """Of the model, without `/v1`."""
    resume: bool = False
    """Whether the last session goes on."""
    trusted: bool = True
    """Whether the user has trusted the folder and reviewed its hooks."""
    lands: bool = False
    """Whether it is to land, for which Codex must be let out of its sandbox."""


@dataclass(frozen=True)
class Client:
    """A client: its name is the one that `queen setup` knows."""

    name: str
    title: str
    package: str
    program: str
    versions: tuple[str, str]
    """The newest that was tried, and one some months older."""
    command: Callable[[Start], list[str]]
    env: Callable[[Start], dict[str, str]]
    trust: Callable[[Path, list[Path]], None]
    """Writes what a user's own settings say of a home, and of the folders that the user trusts."""
    edit: Callable[[Path, str, str], list[Call]]
    """Replaces one text in a file."""
    shell: Callable[[str], Call]
    mcp: Callable[[str, dict[str, Any]], Call]
    spawn: Callable[[str], Call] | None
    """Starts a subagent with a prompt, and waits for it if the client can."""
    cannot: dict[str, str] = field(default_factory=dict)
    """Rows that the client itself cannot do, each with the reason and where that is said."""
    cannot_older: dict[str, str] = field(default_factory=dict)
    """The same for the older version alone."""

    def reasons(self, version: str) -> dict[str, str]:
        """Returns why rows do not hold in a version, where that is the client's own doing."""
        return self.cannot | (self.cannot_older if version == self.versions[1] else {})


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _json(path: Path, value: Any) -> None:
    _write(path, json.dumps(value, indent=2))


# Claude Code


def _claude_command(start: Start) -> list[str]:
    allowed = "Read,Edit,Write,Bash,Agent,Task,mcp__queenbee__*"
    words = ["-p", start.prompt, "--model", "claude-sonnet-4-5", "--allowedTools", allowed]
    return [*words, *(["--continue"] if start.resume else [])]


def _claude_env(start: Start) -> dict[str, str]:
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    return quiet | {"ANTHROPIC_BASE_URL": start.address, "ANTHROPIC_API_KEY": KEY}


def _claude_trust(home: Path, folders: list[Path]) -> None:
    known = {"hasTrustDialogAccepted": True, "enabledMcpjsonServers": ["queenbee"]}
    _json(home / ".claude.json", {"projects": {str(each): known for each in folders}})


def _claude_edit(path: Path, old: str, new: str) -> list[Call]:
    change = {"file_path": str(path), "old_string": old, "new_string": new}
    return [Call("Read", {"file_path": str(path)}), Call("Edit", change)]


CLAUDE = Client(
    "claude",
    "Claude Code",
    "@anthropic-ai/claude-code",
    "claude",
    ("2.1.330", "2.1.197"),
    _claude_command,
    _claude_env,
    _claude_trust,
    _claude_edit,
    lambda command: Call("Bash", {"command": command, "description": "look"}),
    lambda tool, args: Call(f"mcp__queenbee__{tool}", args),
    lambda prompt: Call(
        "Agent",
        {"description": "part", "prompt": prompt, "subagent_type": "general-purpose"}
        | {"run_in_background": False},
    ),
)


# Codex


def _codex_command(start: Start) -> list[str]:
    address = f'model_providers.scripted.base_url="{start.address}"'
    words = ["exec", "-c", address]
    if start.trusted:  # As `/hooks` would be answered.
        words.append("--dangerously-bypass-hook-trust")
    if start.lands:  # As `queen start` lets it; in the sandbox, git cannot commit.
        words.append("--dangerously-bypass-approvals-and-sandbox")
    return [*words, *(["resume", "--last"] if start.resume else []), start.prompt]


def _codex_trust(home: Path, folders: list[Path]) -> None:
    lines = ['model = "gpt-5.5"', 'model_provider = "scripted"', 'approval_policy = "never"']
    lines += ['sandbox_mode = "workspace-write"', "[model_providers.scripted]"]
    lines += ['name = "scripted"', 'base_url = "http://127.0.0.1:9"', 'wire_api = "responses"']
    lines += ['env_key = "SCRIPTED_KEY"', "[analytics]", "enabled = false"]
    for each in folders:
        lines += [f"[projects.{json.dumps(str(each))}]", 'trust_level = "trusted"']
    _write(home / ".codex" / "config.toml", "\n".join(lines) + "\n")


def _codex_edit(path: Path, old: str, new: str) -> list[Call]:
    patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch"
    return [Call("apply_patch", text=patch)]


CODEX = Client(
    "codex",
    "Codex",
    "@openai/codex",
    "codex",
    ("0.169.0", "0.142.3"),
    _codex_command,
    lambda start: {"SCRIPTED_KEY": KEY},
    _codex_trust,
    _codex_edit,
    lambda command: Call("exec_command", {"cmd": command}),
    lambda tool, args: Call(tool, args, namespace="mcp__queenbee"),
    lambda prompt: Call("spawn_agent", {"message": prompt}, namespace="multi_agent_v1"),
    {"hive absent": "its sandbox writes nothing once a folder of `writable_roots` is gone"},
    dict.fromkeys(
        (
            *(
                "edit → lease",
                "one name",
                "leases end",
                "second session",
                "stash in a shared tree",
                "hive broken",
            ),
            *("subagent: files of its session", "subagent: name in its shell", "hive slow"),
            "hive absent",
        ),
        "its sandbox does not start with a writable folder that has no `.git` and is in one, "
        "<https://github.com/openai/codex/issues/37318>",
    )
    | {"MCP at the first request": "it does not wait for its servers before the first request"},
)


# Gemini CLI


def _gemini_command(start: Start) -> list[str]:
    words = ["--approval-mode", "yolo", "-p", start.prompt]
    return [*words, *(["--resume", "latest"] if start.resume else [])]


def _gemini_trust(home: Path, folders: list[Path]) -> None:
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    settings |= {"privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False}}
    settings |= {"general": {"enableAutoUpdate": False}}
    _json(home / ".gemini" / "settings.json", settings)
    if folders:
        trusted = {str(each): "TRUST_FOLDER" for each in folders}
        _json(home / ".gemini" / "trustedFolders.json", trusted)


GEMINI = Client(
    "gemini",
    "Gemini CLI",
    "@google/gemini-cli",
    "gemini",
    ("0.61.0", "0.45.2"),
    _gemini_command,
    lambda start: {"GOOGLE_GEMINI_BASE_URL": start.address, "GEMINI_API_KEY": KEY},
    _gemini_trust,
    lambda path, old, new: [
        Call(
            "replace",
            {"file_path": str(path), "old_string": old, "new_string": new, "instruction": "x"},
        )
    ],
    lambda command: Call("run_shell_command", {"command": command, "description": "look"}),
    lambda tool, args: Call(f"mcp_queenbee_{tool}", args),
    lambda prompt: Call("invoke_agent", {"agent_name": "generalist", "prompt": prompt}),
    {
        "briefing nowhere else": "Gemini CLI asks which model to use with the whole conversation, "
        "<https://geminicli.com/docs/cli/model-routing/>",
    },
)


# OpenCode


def _opencode_env(start: Start, program: str = "OPENCODE") -> dict[str, str]:
    model = {"name": "scripted", "tool_call": True, "limit": {"context": 100000, "output": 8000}}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "scripted"}
    options = {"baseURL": start.address + "/v1", "apiKey": KEY}
    named = {**provider, "options": options, "models": {"scripted": model}}
    config = {"autoupdate": False, "share": "disabled", "provider": {"scripted": named}}
    config |= {"model": "scripted/scripted", "small_model": "scripted/scripted"}
    off = ("MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD")
    return {f"{program}_DISABLE_{each}": "1" for each in off} | {
        f"{program}_CONFIG_CONTENT": json.dumps(config)
    }


OPENCODE = Client(
    "opencode",
    "OpenCode",
    "opencode-ai",
    "opencode",
    ("1.18.33", "1.17.18"),
    lambda start: ["run", *(["--continue"] if start.resume else []), start.prompt],
    _opencode_env,
    lambda home, folders: None,
    lambda path, old, new: [
        Call("read", {"filePath": str(path)}),
        Call("edit", {"filePath": str(path), "oldString": old, "newString": new}),
    ],
    lambda command: Call("bash", {"command": command, "description": "look"}),
    lambda tool, args: Call(f"queenbee_{tool}", args),
    lambda prompt: Call(
        "task", {"description": "part", "prompt": prompt, "subagent_type": "general"}
    ),
    {
        "stop held once": "`opencode run` ends when its session is idle, "
        "<https://opencode.ai/docs/cli/>; the screen and `opencode serve` go on",
    },
)


# Copilot CLI


def _copilot_command(start: Start) -> list[str]:
    words = ["-p", start.prompt, "--allow-all-tools", "--disable-builtin-mcps"]
    return [*words, *(["--continue"] if start.resume else [])]


def _copilot_env(start: Start) -> dict[str, str]:
    provider = {"BASE_URL": start.address, "TYPE": "anthropic", "API_KEY": KEY}
    found = {f"COPILOT_PROVIDER_{key}": value for key, value in provider.items()}
    found |= {"COPILOT_MODEL": "claude-sonnet-4.5", "COPILOT_OFFLINE": "true"}
    return found | {"COPILOT_AUTO_UPDATE": "false"}


def _copilot_trust(home: Path, folders: list[Path]) -> None:
    trusted = [str(each) for each in folders]
    _json(
        home / ".copilot" / "config.json", {"trusted_folders": trusted, "trustedFolders": trusted}
    )


COPILOT = Client(
    "copilot",
    "Copilot CLI",
    "@github/copilot",
    "copilot",
    ("1.0.102", "1.0.65"),
    _copilot_command,
    _copilot_env,
    _copilot_trust,
    lambda path, old, new: [Call("edit", {"path": str(path), "old_str": old, "new_str": new})],
    lambda command: Call("bash", {"command": command, "description": "look"}),
    lambda tool, args: Call(f"queenbee-{tool}", args),
    lambda prompt: Call(
        "task",
        {"description": "part", "prompt": prompt, "agent_type": "general-purpose", "name": "part"},
    ),
    cannot_older={
        "subagent: files of its session": "the events of its subagents do not name the session"
    },
)

# Qwen Code


def _qwen_command(start: Start) -> list[str]:
    words = ["--approval-mode", "yolo", "-p", start.prompt]
    return [*words, *(["--continue"] if start.resume else [])]


def _qwen_trust(home: Path, folders: list[Path]) -> None:
    settings: dict[str, Any] = {"general": {"enableAutoUpdate": False}}
    settings |= {"security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": True}}}
    settings |= {"privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False}}
    _json(home / ".qwen" / "settings.json", settings)
    _json(home / ".qwen" / "trustedFolders.json", {str(each): "TRUST_FOLDER" for each in folders})


QWEN = Client(
    "qwen",
    "Qwen Code",
    "@qwen-code/qwen-code",
    "qwen",
    ("0.24.4", "0.15.6"),
    _qwen_command,
    lambda start: {
        "OPENAI_BASE_URL": start.address + "/v1",
        "OPENAI_API_KEY": KEY,
        "OPENAI_MODEL": "scripted",
    },
    _qwen_trust,
    lambda path, old, new: [
        Call("read_file", {"file_path": str(path)}),
        Call("edit", {"file_path": str(path), "old_string": old, "new_string": new}),
    ],
    lambda command: Call("run_shell_command", {"command": command, "is_background": False}),
    lambda tool, args: Call(f"mcp__queenbee__{tool}", args),
    lambda prompt: Call(
        "agent", {"description": "part", "prompt": prompt, "subagent_type": "general-purpose"}
    ),
    {
        "leases end": "`qwen -p` reports no end of its session, "
        "<https://qwenlm.github.io/qwen-code-docs/en/users/features/hooks>; its leases end when "
        "the next one begins",
    },
    {
        "stop held once": "its first Stop says that one was held already (`stop_hook_active`)",
        "subagent: files of its session": "the events of its subagents do not name them",
        "hive broken": "`qwen -p` reports no start of its session",
        "undo after a run": "it leaves a copy of its settings, `settings.json.orig`",
    },
)

# Kilo CLI, made from OpenCode

KILO = replace(
    OPENCODE,
    name="kilo",
    title="Kilo CLI",
    package="@kilocode/cli",
    program="kilo",
    versions=("7.7.7", "7.0.33"),
    command=lambda start: [
        *("run", "--auto"),
        *(["--continue"] if start.resume else []),
        start.prompt,
    ],
    env=lambda start: {**_opencode_env(start, "KILO"), "KILO_TELEMETRY_LEVEL": "off"},
    cannot={
        "stop held once": "`kilo run` ends when its session is idle, "
        "<https://kilo.ai/docs/cli>; the screen and `kilo serve` go on"
    },
)

CLIENTS = (CODEX, CLAUDE, GEMINI, OPENCODE, COPILOT, QWEN, KILO)
