import { spawn } from "node:child_process"

// Runs `baton hook EVENT` with a report on its standard input. A failure never affects OpenCode.
const report = (event, body) =>
  new Promise((resolve) => {
    try {
      const args = HOOK.map((word) => (word === "EVENT" ? event : word))
      const child = spawn(BATON, args, { stdio: ["pipe", "pipe", "ignore"] })
      let output = ""
      child.stdout.on("data", (part) => (output += part))
      child.on("error", () => resolve(""))
      child.on("close", () => resolve(output))
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify(body))
    } catch {
      resolve("")
    }
  })

// Returns the text that Baton adds to the context.
const contextOf = (output) => {
  try {
    return JSON.parse(output).hookSpecificOutput.additionalContext
  } catch {
    return undefined
  }
}

export const Baton = async ({ directory, client }) => {
  // Context of each session. The same text is added to every call, so that the cached prefix does not change.
  const contexts = new Map()
  // Sessions of sub-agents, which are part of the session that started them.
  const parents = new Map()
  // Last text of the assistant in each session.
  const closing = new Map()
  const chat = (sessionID) => parents.get(sessionID) ?? sessionID
  const base = (sessionID) => ({ session_id: chat(sessionID), cwd: directory })

  const start = (sessionID) => {
    if (!contexts.has(sessionID)) {
      const output = report("session-start", { ...base(sessionID), source: "startup" })
      contexts.set(sessionID, output.then(contextOf))
    }
    return contexts.get(sessionID)
  }

  return {
    config: async (config) => {
      config.mcp = { baton: { type: "local", command: [BATON, ...MCP], enabled: true }, ...config.mcp }
      config.command = { ...COMMANDS, ...config.command }
    },
    event: async ({ event }) => {
      const properties = event.properties ?? {}
      const sessionID = properties.sessionID ?? properties.info?.id
      if (event.type === "session.created" && properties.info?.parentID) {
        parents.set(properties.info.id, chat(properties.info.parentID))
      } else if (event.type === "message.part.updated" && properties.part?.type === "text") {
        closing.set(properties.part.sessionID, properties.part.text)
      } else if (event.type === "session.idle" && sessionID) {
        const body = { ...base(sessionID), last_assistant_message: closing.get(sessionID) }
        await report(parents.has(sessionID) ? "subagent-stop" : "stop", body)
      } else if (event.type === "session.error" && sessionID && !parents.has(sessionID)) {
        const error = properties.error?.data?.message ?? properties.error?.name
        await report("stop-failure", { ...base(sessionID), error })
      } else if (event.type === "session.deleted" && sessionID && !parents.has(sessionID)) {
        await report("session-end", { ...base(sessionID), reason: "deleted" })
      }
    },
    "chat.message": async (input, output) => {
      if (parents.has(input.sessionID)) return
      await start(input.sessionID)
      const prompt = output.parts
        .filter((part) => part.type === "text" && !part.synthetic)
        .map((part) => part.text)
        .join("\n")
      if (prompt) await report("user-prompt-submit", { ...base(input.sessionID), prompt })
    },
    "tool.execute.after": async (input, output) => {
      // The form in which Claude Code reports a command.
      const ran = { stdout: output.output, stderr: "", exit_code: output.metadata?.exit }
      await report("post-tool-use", {
        ...base(input.sessionID),
        tool_name: input.tool,
        tool_use_id: input.callID,
        tool_input: input.args,
        tool_response: input.tool === "bash" ? ran : output.output,
      })
    },
    "experimental.chat.system.transform": async (input, output) => {
      if (!input.sessionID || parents.has(input.sessionID)) return
      const context = await start(input.sessionID)
      if (context) output.system.push(context)
    },
    "experimental.session.compacting": async (input, output) => {
      await report("pre-compact", { ...base(input.sessionID), trigger: "auto" })
      const answer = await report("session-start", { ...base(input.sessionID), source: "compact" })
      const context = contextOf(answer)
      if (context) output.context.push(context)
    },
  }
}
