// queenbee: made by `queen setup`, which replaces this file
//
// QueenBee's plugin for OpenCode 1 and 2: it asks `queen-hook` before and after each tool, and passes
// on what it answers.
//
// OpenCode 1 calls `server` and reads the hooks that it returns; OpenCode 2 calls `setup`. Only the
// default is exported: OpenCode 1 takes every other export for a plugin of its own.
import { spawn, spawnSync } from "node:child_process"

const AGENT = "opencode"
const TIMEOUT_MS = 10_000
const READING = new Set([
  "bash", "codesearch", "glob", "grep", "list", "lsp", "question", "read", "shell", "skill", "subagent",
  "task", "todoread", "todowrite", "webfetch", "websearch",
]) // Tools of OpenCode that change no file, or whose files cannot be seen: not worth a process.
const SHELLS = new Set(["bash", "shell"]) // Git in them may touch what others have in the same tree.
const LONG = new Set(["bash", "shell", "subagent", "task"]) // After these, a process costs little.

/** Whether this is `opencode run`, which ends as soon as its session is idle. */
const endsWhenIdle = () => process.argv.slice(2).find((word) => !word.startsWith("-")) === "run"

/** Asks the hook about one event; whatever goes wrong with it never stops the agent. */
const ask = (event) =>
  new Promise((resolve) => {
    let out = ""
    const done = () => {
      try {
        resolve(out.trim() ? JSON.parse(out) : {})
      } catch {
        resolve({})
      }
    }
    try {
      const hook = spawn("queen-hook", { timeout: TIMEOUT_MS, stdio: ["pipe", "pipe", "ignore"] })
      hook.on("error", () => resolve({}))
      hook.on("close", done)
      hook.stdin.on("error", () => {})
      hook.stdout.setEncoding("utf8")
      hook.stdout.on("data", (text) => (out += text))
      hook.stdin.end(JSON.stringify(event))
    } catch {
      resolve({})
    }
  })

/** What both versions share: which sessions there are, and what each of them was told. */
const watch = (directory) => {
  const parents = new Map() // A subagent's session, and the session that started it.
  const names = new Map() // The name that a session acts under, if the hook gave it one.
  const started = new Map() // A promise of what a session is told at its start, until its first prompt.
  const held = new Set() // Sessions that were kept from stopping since the user last spoke.
  const goingOn = new Set() // Those whose next prompt is ours.

  const root = (session) => {
    const seen = new Set()
    while (parents.has(session) && !seen.has(session)) {
      seen.add(session)
      session = parents.get(session)
    }
    return session
  }

  const send = (name, session, more) =>
    ask({
      agent: AGENT,
      hook_event_name: name,
      session_id: root(session),
      ...(parents.has(session) ? { agent_id: session } : {}),
      cwd: directory,
      ...more,
    })

  const start = async (session) => {
    const answer = await send(parents.has(session) ? "SubagentStart" : "SessionStart", session, {
      source: "startup",
    })
    if (answer.env?.QUEEN_DROID) names.set(session, answer.env.QUEEN_DROID)
    return answer.hookSpecificOutput?.additionalContext
  }

  /** Starts a session once; whoever comes meanwhile waits for the same answer. */
  const begin = (session) => {
    if (session && !started.has(session)) started.set(session, start(session))
    return started.get(session)
  }

  return {
    begin,
    created: (session, parent) => {
      if (session && parent) parents.set(session, parent)
    },
    nameOf: async (session) => {
      await begin(session)
      return names.get(session)
    },
    before: async (session, tool, args) => {
      const isGit = SHELLS.has(tool) && String(args?.command).includes("git")
      if (READING.has(tool) && !isGit) return
      await begin(session)
      const answer = (await send("PreToolUse", session, { tool_name: tool, tool_input: args }))
        .hookSpecificOutput
      if (answer?.permissionDecision === "deny") throw new Error(answer.permissionDecisionReason)
    },
    after: async (session, tool, args) => {
      if (READING.has(tool) && !LONG.has(tool)) return undefined
      return (await send("PostToolUse", session, { tool_name: tool, tool_input: args }))
        .hookSpecificOutput?.additionalContext
    },
    /** Returns what a session is told with a prompt. */
    prompted: async (session, prompt) => {
      if (goingOn.delete(session)) return []
      held.delete(session)
      const told = await begin(session)
      started.set(session, undefined)
      const news = (await send("UserPromptSubmit", session, { prompt })).hookSpecificOutput
        ?.additionalContext
      return [told, news].filter(Boolean)
    },
    /** Returns why a session that is about to stop should go on, or undefined. */
    stops: async (session) => {
      if (parents.has(session)) {
        await send("SubagentStop", session, {})
        return undefined
      }
      if (endsWhenIdle()) {
        // It would not live to hear an answer, and its model never sees one.
        const end = { hook_event_name: "SessionEnd", session_id: session, reason: "exit" }
        const input = JSON.stringify({ agent: AGENT, cwd: directory, ...end })
        spawnSync("queen-hook", { input, timeout: TIMEOUT_MS })
        return undefined
      }
      const answer = await send("Stop", session, { stop_hook_active: held.has(session) })
      if (answer.decision !== "block" || held.has(session)) return undefined
      held.add(session)
      goingOn.add(session)
      return answer.reason
    },
    ended: async (session) => {
      await send(parents.has(session) ? "SubagentStop" : "SessionEnd", session, { reason: "deleted" })
      for (const known of [parents, names, started, held, goingOn]) known.delete(session)
    },
  }
}

/** OpenCode 1. */
const server = async ({ directory, client }) => {
  const sessions = watch(directory)
  const owed = new Map() // What a session is to be told at its next request, or after a tool.
  const said = new Map() // What was put into each message: OpenCode keeps it without.
  const take = (session) => {
    const told = owed.get(session)
    owed.delete(session)
    return told
  }
  return {
    "tool.execute.before": (input, output) => sessions.before(input.sessionID, input.tool, output.args),
    "tool.execute.after": async (input, output) => {
      if (!input.args) return // Versions that do not say what the tool was given.
      const news = await sessions.after(input.sessionID, input.tool, input.args)
      const told = [take(input.sessionID), news].filter(Boolean).join("\n")
      if (told && typeof output?.output === "string") output.output += `\n\n${told}`
    },
    "chat.message": async (input, output) => {
      const text = output.parts.filter((part) => part.type === "text")
      const prompt = text.map((part) => part.text).join("\n")
      const told = [owed.get(input.sessionID), ...(await sessions.prompted(input.sessionID, prompt))]
      owed.set(input.sessionID, told.filter(Boolean).join("\n"))
    },
    // Only in the requests of the conversation: what is in a prompt would also be in that for a title.
    "experimental.chat.messages.transform": async (_, output) => {
      const last = output.messages.findLast((message) => message.info.role === "user")
      const told = take(last?.info.sessionID)
      if (told) said.set(last.info.id, [said.get(last.info.id), told].filter(Boolean).join("\n"))
      for (const { info, parts } of output.messages) {
        const text = said.get(info.id)
        if (text && !parts.some((part) => part.text === text)) parts.push({ type: "text", text })
      }
    },
    "shell.env": async (input, output) => {
      const name = input.sessionID && (await sessions.nameOf(input.sessionID))
      if (name) output.env.QUEEN_DROID = name
    },
    event: async ({ event }) => {
      const about = event.properties ?? {}
      if (event.type === "session.created") {
        sessions.created(about.info?.id, about.info?.parentID)
        await sessions.begin(about.info?.id)
      } else if (event.type === "session.deleted") {
        await sessions.ended(about.info?.id)
      } else if (event.type === "session.idle") {
        const reason = await sessions.stops(about.sessionID)
        if (!reason) return
        const body = { parts: [{ type: "text", text: reason }] }
        // Not awaited: the answer may take an hour.
        client.session.prompt({ path: { id: about.sessionID }, body }).catch(() => {})
      }
    },
  }
}

/** Adds text to the result of a tool of OpenCode 2, which is a text or a list of parts. */
const append = (result, told) => {
  if (typeof result?.content === "string") result.content += `\n\n${told}`
  else if (Array.isArray(result?.content)) result.content.push({ type: "text", text: told })
}

/** OpenCode 2. */
const setup = async (ctx) => {
  const sessions = watch(ctx.location?.directory ?? process.cwd())
  const news = new Map()
  await ctx.tool.hook("execute.before", (event) =>
    sessions.before(event.sessionID, event.tool, event.input),
  )
  await ctx.tool.hook("execute.after", async (event) => {
    if (event.status !== "completed") return
    const told = await sessions.after(event.sessionID, event.tool, event.input)
    if (told) append(event.result, told)
  })
  await ctx.session.hook("prompt", async (event) => {
    const told = await sessions.prompted(event.sessionID, event.prompt?.text ?? "")
    if (!told.length) return
    // A request has what its system says, and no more: who the session is, and what is new.
    const first = news.get(event.sessionID)?.slice(0, 1) ?? []
    news.set(event.sessionID, [...first, told.join("\n")])
  })
  await ctx.session.hook("context", (event) => {
    const told = news.get(event.sessionID)?.join("\n")
    if (told && Array.isArray(event.system)) event.system.push({ type: "text", text: told })
  })
  const listen = async () => {
    for await (const event of ctx.event.subscribe()) {
      const about = event.data ?? event.properties ?? {}
      const session = about.sessionID ?? about.info?.id
      if (event.type === "session.created") {
        sessions.created(session, about.parentID ?? about.info?.parentID)
      } else if (event.type === "session.deleted") {
        news.delete(session)
        await sessions.ended(session)
      } else if (event.type === "session.idle") {
        const reason = await sessions.stops(session)
        if (reason) ctx.session.prompt({ sessionID: session, prompt: { text: reason } }).catch(() => {})
      }
    }
  }
  listen().catch(() => {}) // The stream ends with OpenCode.
}

export default { id: "queenbee", server, setup }
