"""The plugin for OpenCode, in node, with the hook and a hive: as OpenCode 1 and 2 would call it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hives import QuickQueen, git

from queenbee import Hive

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="the plugin needs node")

ONE = """
import plugin from "./queenbee.mjs"
const [directory] = process.argv.slice(2)
const prompts = []
const client = { session: { prompt: async (what) => { prompts.push(what) } } }
const hooks = await plugin.server({ directory, client })
const refused = async (act) => { try { await act() } catch (error) { return error.message } }
const edit = (sessionID, file) => refused(() => hooks["tool.execute.before"](
  { tool: "edit", sessionID, callID: "c" }, { args: { filePath: directory + "/" + file } }))
const edited = async (sessionID, file) => {
  const output = { title: "", output: "done", metadata: {} }
  const args = { filePath: directory + "/" + file }
  await hooks["tool.execute.after"]({ tool: "edit", sessionID, callID: "c", args }, output)
  return output.output
}
const happens = (type, properties) => hooks.event({ event: { type, properties } })
const asks = async (sessionID, text) => {
  const output = { message: {}, parts: [{ type: "text", text }] }
  await hooks["chat.message"]({ sessionID }, output)
  if (output.parts[0].text !== text) throw new Error("what is kept has changed")
  history.push({ id: `msg_${history.length}`, role: "user", sessionID, text })
  return request(sessionID)
}
const history = []
const request = async (sessionID) => {
  const found = history.filter((each) => each.sessionID === sessionID)
  const messages = found.map((info) => ({ info, parts: [{ type: "text", text: info.text }] }))
  await hooks["experimental.chat.messages.transform"]({}, { messages })
  return messages.at(-1).parts.map((part) => part.text).join("\\n")
}
const shell = async (sessionID) => {
  const output = { env: {} }
  await hooks["shell.env"]({ cwd: directory, sessionID }, output)
  return output.env.QUEEN_DROID
}
"""

TWO = """
import plugin from "./queenbee.mjs"
const [directory] = process.argv.slice(2)
const prompts = [], hooks = {}, queue = []
let wake = () => {}
const on = (domain) => ({ hook: async (name, act) => { hooks[domain + " " + name] = act } })
const ctx = {
  location: { directory },
  tool: on("tool"),
  session: { ...on("session"), prompt: async (what) => { prompts.push(what) } },
  event: { subscribe: async function* () {
    for (;;) {
      while (queue.length) yield queue.shift()
      await new Promise((next) => (wake = next))
    }
  } },
}
await plugin.setup(ctx)
const refused = async (act) => { try { await act() } catch (error) { return error.message } }
const edit = (sessionID, file) => refused(() => hooks["tool execute.before"](
  { tool: "edit", sessionID, agent: "build", input: { path: directory + "/" + file } }))
const edited = async (sessionID, file) => {
  const event = { tool: "edit", sessionID, input: { path: directory + "/" + file },
    status: "completed", result: { content: [{ type: "text", text: "done" }] } }
  await hooks["tool execute.after"](event)
  return event.result.content.map((part) => part.text).join("\\n")
}
const happens = async (type, properties) => {
  const data = { sessionID: properties.info?.id ?? properties.sessionID,
    parentID: properties.info?.parentID }
  queue.push({ type, data }); wake()
  await new Promise((next) => setTimeout(next, 1500))
}
const asks = async (sessionID, text) => {
  await hooks["session prompt"]({ sessionID, prompt: { text } })
  const event = { sessionID, system: [] }
  hooks["session context"](event)
  return event.system.map((part) => part.text).join("\\n")
}
"""
BOTH = pytest.mark.parametrize("version", [ONE, TWO], ids=["OpenCode 1", "OpenCode 2"])


@pytest.fixture
def path_with_hook(tmp_path: Path) -> str:
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "queen-hook"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} -P -m queenbee.hook.main\n")
    program.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def plugin(project: Path, agent: str) -> str:
    """Returns the plugin that `queen setup` writes for an agent."""
    made = project / f".{agent}" / "plugins" / "queenbee.js"
    if not made.exists():
        project.mkdir(exist_ok=True)
        git(project, "init", "-q")
        quick = QuickQueen(project)
        quick("init")
        quick("setup", agent, env={"HOME": str(project.parent)})
    return made.read_text()


def run(tree: Path, version: str, steps: str, path: str, agent: str = "opencode") -> Any:
    """Runs steps in node after one of the versions, and returns what they print last."""
    place = tree.parent / "plugin"
    place.mkdir(exist_ok=True)
    (place / "queenbee.mjs").write_text(plugin(tree.parent / "project", agent))
    (place / "run.mjs").write_text(f"{version}\n{steps}\nprocess.exit(0)\n")
    clean = {key: value for key, value in os.environ.items() if not key.startswith("QUEEN_")}
    done = subprocess.run(
        ["node", str(place / "run.mjs"), str(tree)],
        cwd=tree,
        env={**clean, "PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    return json.loads(done.stdout.splitlines()[-1])


def holders(tree: Path) -> dict[str, str]:
    return {lease.pattern: lease.droid for lease in Hive.open(tree, env={}).reservations.find()}


@pytest.mark.some(1)
@BOTH
def test_an_edit_is_leased_refused_and_told(tree: Path, version: str, path_with_hook: str) -> None:
    hive = Hive.open(tree, droid="reviewer", env={})
    hive.reservations.reserve(["docs/**"])
    steps = """
    console.log(JSON.stringify([
      await edit("ses_first", "src/app.py") ?? null,
      await edit("ses_second", "src/app.py") ?? null,
      await edited("ses_second", "docs/a.md"),
      await edited("ses_first", "src/app.py"),
    ]))
    """
    free, refused, told, quiet = run(tree, version, steps, path_with_hook)
    assert free is None
    assert refused.startswith("src/app.py is reserved by opencode-sesfirst")
    assert told.startswith("done\n")
    assert "You changed a file that another agent holds. docs/a.md" in told
    assert quiet == "done"
    assert holders(tree) == {"docs/**": "reviewer", "src/app.py": "opencode-sesfirst"}


def test_in_kilo_cli_the_default_is_a_function_and_sessions_are_named_after_it(
    tree: Path, path_with_hook: str
) -> None:
    """Its older versions call every export, and take no object."""
    steps = """
    const told = await asks("ses_first", "Go on")
    console.log(JSON.stringify([told, await edit("ses_first", "src/app.py") ?? null]))
    """
    one = ONE.replace("plugin.server(", "plugin(")
    told, refused = run(tree, one, steps, path_with_hook, "kilo")
    assert "You are kilo-sesfirst." in told
    assert refused is None
    assert holders(tree) == {"src/app.py": "kilo-sesfirst"}


@pytest.mark.some(1)
@BOTH
def test_a_session_that_is_deleted_gives_its_files_back(
    tree: Path, version: str, path_with_hook: str
) -> None:
    steps = """
    await edit("ses_first", "src/app.py")
    await happens("session.deleted", { info: { id: "ses_first" } })
    console.log(JSON.stringify(await edit("ses_second", "src/app.py") ?? null))
    """
    assert run(tree, version, steps, path_with_hook) is None
    assert holders(tree) == {"src/app.py": "opencode-essecond"}


@pytest.mark.some(1)
@BOTH
def test_a_subagent_is_one_of_its_session(tree: Path, version: str, path_with_hook: str) -> None:
    steps = """
    await happens("session.created", { info: { id: "ses_first" } })
    await happens("session.created", { info: { id: "ses_child99", parentID: "ses_first" } })
    await edit("ses_child99", "src/app.py")
    const refusal = await edit("ses_first", "src/app.py")
    console.log(JSON.stringify([refusal, await asks("ses_child99", "x")]))
    """
    refused, told = run(tree, version, steps, path_with_hook)
    assert "src/app.py is reserved by opencode-sesfirst.schild99" in refused
    assert "you are opencode-sesfirst.schild99, a subagent of opencode-sesfirst" in told


@BOTH
def test_a_session_is_told_who_it_is_with_its_first_prompt(
    tree: Path, version: str, path_with_hook: str
) -> None:
    steps = """
    const told = [await asks("ses_first", "Go on"), await asks("ses_first", "And on")]
    console.log(JSON.stringify(told))
    """
    first, second = run(tree, version, steps, path_with_hook)
    assert "You are opencode-sesfirst." in first
    # What OpenCode 1 is told stays in the conversation; OpenCode 2 makes each request anew.
    assert ("You are opencode-sesfirst." in second) is (version is TWO)


def test_what_a_session_is_told_waits_for_its_start_and_stays_in_each_request(
    tree: Path, path_with_hook: str
) -> None:
    """OpenCode 1 does not wait until its plugin has heard of a session."""
    steps = """
    const created = happens("session.created", { info: { id: "ses_first" } })
    const first = await asks("ses_first", "Go on")
    await created
    const again = await request("ses_first")
    console.log(JSON.stringify([first, again, await asks("ses_first", "And on")]))
    """
    first, again, second = run(tree, ONE, steps, path_with_hook)
    assert first.count("You are opencode-sesfirst.") == 1
    assert first == again
    assert second == "And on"


def test_what_no_request_took_along_comes_after_a_tool(tree: Path, path_with_hook: str) -> None:
    """In versions of OpenCode 1 that do not ask for each request."""
    steps = """
    await hooks["chat.message"]({ sessionID: "ses_first" }, { parts: [] })
    console.log(JSON.stringify(
      [await edited("ses_first", "src/app.py"), await edited("ses_first", "src/app.py")]))
    """
    first, second = run(tree, ONE, steps, path_with_hook)
    assert "You are opencode-sesfirst." in first
    assert second == "done"


def test_a_run_that_ends_when_it_is_idle_ends_its_session(tree: Path, path_with_hook: str) -> None:
    steps = """
    await edit("ses_first", "src/app.py")
    process.argv.splice(2, 0, "--print-logs", "run")
    await happens("session.idle", { sessionID: "ses_first" })
    console.log(JSON.stringify(prompts))
    """
    Hive.open(tree, droid="opencode-sesfirst", env={}).assignments.claim("qb-1")
    assert run(tree, ONE, steps, path_with_hook) == []
    assert holders(tree) == {}


def test_the_shell_of_a_session_has_its_name(tree: Path, path_with_hook: str) -> None:
    (tree / ".git" / "queenbee-droid").write_text("alice\n")
    steps = """
    await happens("session.created", { info: { id: "ses_first" } })
    await happens("session.created", { info: { id: "ses_child99", parentID: "ses_first" } })
    console.log(JSON.stringify(
      [await shell("ses_first"), await shell("ses_second"), await shell("ses_child99")]))
    """
    assert run(tree, ONE, steps, path_with_hook) == [
        "alice",
        "alice-essecond",
        "alice.schild99",
    ]


@BOTH
def test_a_session_is_kept_at_its_stop_once_until_the_user_speaks(
    tree: Path, version: str, path_with_hook: str
) -> None:
    """With a hook that always wants it to go on, as nothing else does yet."""
    hook = Path(path_with_hook.partition(":")[0]) / "queen-hook"
    hook.write_text(
        "#!/bin/sh\ncase $(cat) in *'\"Stop\"'*) echo '"
        + json.dumps({"decision": "block", "reason": "You still hold shop-1"})
        + "';; esac\n"
    )
    steps = """
    await happens("session.idle", { sessionID: "ses_first" })
    await asks("ses_first", "You still hold shop-1")
    await happens("session.idle", { sessionID: "ses_first" })
    const once = prompts.length
    await asks("ses_first", "Another task")
    await happens("session.idle", { sessionID: "ses_first" })
    console.log(JSON.stringify([once, prompts]))
    """
    once, prompts = run(tree, version, steps, path_with_hook)
    assert once == 1
    assert len(prompts) == 2
    assert "You still hold shop-1" in json.dumps(prompts[0])
    assert "ses_first" in json.dumps(prompts[0])


@pytest.mark.some(2)
@BOTH
@pytest.mark.parametrize("hook", ["", "#!/bin/sh\nexit 3\n", "#!/bin/sh\necho nonsense\n"])
def test_a_hook_that_is_missing_or_broken_stops_nothing(
    tree: Path, version: str, path_with_hook: str, hook: str
) -> None:
    program = Path(path_with_hook.partition(":")[0]) / "queen-hook"
    program.unlink()
    if hook:
        program.write_text(hook)
        program.chmod(0o755)
    path = f"{program.parent}:/usr/bin:/bin"
    steps = """
    const refusal = await edit("ses_first", "a.py") ?? null
    console.log(JSON.stringify([refusal, await edited("s", "a.py")]))
    """
    assert run(tree, version, steps, path) == [None, "done"]
    assert holders(tree) == {}


def test_only_the_default_is_exported(tree: Path, path_with_hook: str) -> None:
    """OpenCode 1 calls every export as a plugin of its own."""
    steps = """
    const all = await import("./queenbee.mjs")
    console.log(JSON.stringify([Object.keys(all), Object.keys(all.default)]))
    """
    assert run(tree, ONE, steps, path_with_hook) == [["default"], ["id", "server", "setup"]]
