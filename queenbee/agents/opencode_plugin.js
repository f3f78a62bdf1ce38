// queenbee: made by `queen setup`, which replaces this file
import { spawnSync } from "node:child_process"

export const QueenBee = async ({ directory }) => {
  const ask = (name, session, tool, args) => {
    const event = {
      agent: "opencode", hook_event_name: name, session_id: session, cwd: directory,
      tool_name: tool, tool_input: args,
    }
    const done = spawnSync("queen-hook", { input: JSON.stringify(event), encoding: "utf8", timeout: 10000 })
    return done.stdout ? JSON.parse(done.stdout).hookSpecificOutput : undefined
  }
  return {
    "tool.execute.before": async (input, output) => {
      const answer = ask("PreToolUse", input.sessionID, input.tool, output.args)
      if (answer?.permissionDecision === "deny") throw new Error(answer.permissionDecisionReason)
    },
    "tool.execute.after": async (input, output) => {
      if (input.args) ask("PostToolUse", input.sessionID, input.tool, input.args)
    },
    event: async ({ event }) => {
      if (event.type === "session.deleted") ask("SessionEnd", event.properties.info.id)
    },
  }
}
