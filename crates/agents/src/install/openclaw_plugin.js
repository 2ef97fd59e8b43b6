// Written by tenure (`tenure install openclaw`); `tenure uninstall openclaw` removes it. Edits here are lost.
//
// Sends the gateway's events to one long-lived tenure, a JSON object per line, and returns its answers, one per line in
// the same order. Nothing here may delay or fail a turn: every wait has a limit, every failure is ignored, and without
// tenure the plugin does nothing. A tenure that dies costs one event and is started again.
import { execFile, spawn } from "node:child_process"
import { accessSync, constants } from "node:fs"

const PROGRAM = "PROGRAM"
const ARGUMENTS = ["ARGUMENTS"]
// How long a hook waits for an answer, and how long tenure may be silent before it is ended.
const MAX_MS = 2000
const MAX_SILENT_MS = 4000
const MAX_CHARS = 1024 * 1024
const MAX_PENDING = 1000
// How long after its last start tenure is started again: more if it dies at once.
const PAUSES_MS = [0, 200, 1000, 5000, 30000]
// When a repair is tried again.
const HEALS_AFTER_MS = [0, 1000, 3000, 10000]

// OpenClaw loads a plugin more than once in a process; what is known belongs to the process.
const state = (globalThis[Symbol.for("tenure.openclaw")] ??= {
  child: null,
  started: 0,
  failures: 0,
  // The key that owns a session id, as tenure confirmed it.
  owners: new Map(),
  // For each session id: its key, the variables for its shell, text that waits for its next prompt, its start.
  sessions: new Map(),
  // The newest session id of a key, and the key that spawned a subagent's.
  ids: new Map(),
  parents: new Map(),
  // Keys that came with another key's session id; nothing of theirs is written.
  refused: new Map(),
})

const unref = (one) => one?.unref?.()
const later = (run, ms) => unref(setTimeout(run, ms))

const parsed = (text) => {
  try {
    const answer = JSON.parse(text)
    return answer && typeof answer === "object" ? answer : {}
  } catch {
    return {}
  }
}

const launch = () => {
  const pause = PAUSES_MS[Math.min(state.failures, PAUSES_MS.length - 1)]
  if (Date.now() < state.started + pause) return null
  state.started = Date.now()
  state.failures += 1
  accessSync(PROGRAM, constants.X_OK)
  const child = spawn(PROGRAM, ARGUMENTS, { stdio: ["pipe", "pipe", "ignore"] })
  const line = { child, pending: [], heard: Date.now(), text: "" }
  const gone = () => {
    if (state.child === line) state.child = null
    for (const one of line.pending.splice(0)) one({})
  }
  child.on("error", gone)
  child.on("close", gone)
  child.stdin.on("error", () => {})
  child.stdout.on("error", () => {})
  child.stdout.setEncoding("utf8")
  child.stdout.on("data", (part) => {
    line.heard = Date.now()
    state.failures = 0
    const lines = (line.text + part).split("\n")
    line.text = lines.pop()
    for (const one of lines) line.pending.shift()?.(parsed(one))
    if (line.text.length > MAX_CHARS) end(line)
  })
  // Nothing of it keeps a process alive that is otherwise done.
  for (const one of [child, child.stdin, child.stdout]) unref(one)
  return line
}

const end = (line) => {
  if (state.child === line) state.child = null
  try {
    line.child.kill("SIGKILL")
  } catch {}
}

// One event to tenure, one answer back. What is answered too late for the hook is kept for the session's next prompt.
const ask = (event) =>
  new Promise((resolve) => {
    try {
      state.child ??= launch()
      const line = state.child
      if (!line || line.pending.length >= MAX_PENDING) return resolve({})
      let isLate = false
      const timer = setTimeout(() => {
        isLate = true
        resolve({})
        later(() => {
          const silent = Date.now() - line.heard >= MAX_SILENT_MS
          if (silent && line.pending.includes(one)) end(line)
        }, MAX_SILENT_MS - MAX_MS)
      }, MAX_MS)
      const one = (answer) => {
        clearTimeout(timer)
        if (isLate) keep(event, answer)
        else resolve(answer)
      }
      if (!line.pending.length) line.heard = Date.now()
      line.pending.push(one)
      line.child.stdin.write(`${JSON.stringify(event)}\n`)
    } catch {
      resolve({})
    }
  })

const texts = (answer) => (typeof answer.context === "string" && answer.context ? [answer.context] : [])
const within = (promise, ms) => Promise.race([promise, new Promise((resolve) => later(resolve, ms))])
const clipped = (text, most) => (typeof text === "string" ? text.slice(0, most) : null)
const isSubagent = (key) => key.includes(":subagent:")

const known = (id) => {
  if (!state.sessions.has(id)) state.sessions.set(id, { key: null, env: {}, waiting: [], start: null })
  return state.sessions.get(id)
}

const keep = (event, answer) => {
  const session = known(event.session_id)
  if (answer.env && typeof answer.env === "object") session.env = answer.env
  session.waiting.push(...texts(answer))
}

// Whether a session id belongs to another key.
const owner = (id, key) => {
  const owner = state.owners.get(id)
  return owner !== undefined && owner !== key ? owner : null
}

// Nothing of this key is written from now on, until the id is its owner's alone again.
const refuse = (id, key, owner) => {
  if (state.refused.get(key)?.id === id) return state.refused.get(key)
  const refused = { id, owner, heals: false }
  state.refused.set(key, refused)
  // Its message may never come.
  later(() => heal(key, refused), 3000)
  return refused
}

// Lets another process give the id back to its owner, then forgets the refusal.
const heal = (key, refused, attempt = 0) => {
  if (attempt === 0) {
    if (refused.heals) return
    refused.heals = true
  }
  const done = (error, said) => {
    if (state.refused.get(key) !== refused) return
    const faults = parsed(said).openclaw?.faults
    const isLeft = !Array.isArray(faults) || faults.some((one) => one.id === refused.id && !one.fixed)
    if (!isLeft) return state.refused.delete(key)
    if (attempt + 1 < HEALS_AFTER_MS.length) return later(() => heal(key, refused, attempt + 1), HEALS_AFTER_MS[attempt + 1])
    refused.heals = false
  }
  try {
    execFile(PROGRAM, ["verify", "--openclaw", "--heal", "--json"], { timeout: 30000, killSignal: "SIGKILL" }, done)
  } catch {
    refused.heals = false
  }
}

// The session of an event: its id, its key and the subagent in it; none if the id is another key's.
const whose = (event, context) => {
  let id = event.sessionId ?? context.sessionId
  let key = event.sessionKey ?? context.sessionKey
  if (typeof key !== "string" || !key) return null
  let subagent = null
  if (isSubagent(key)) {
    subagent = key
    for (let up = 0; isSubagent(key) && up < 16; up += 1) key = state.parents.get(key) ?? ""
    id = state.ids.get(key)
  }
  if (typeof id !== "string" || !id || !key) return null
  const other = owner(id, key)
  if (other) {
    refuse(id, key, other)
    return null
  }
  return { id, key, subagent, dir: context.workspaceDir ?? null }
}

const workspace = (api, found) => {
  const dir = found.dir ?? api.config?.agents?.defaults?.workspace
  return typeof dir === "string" && dir.startsWith("/") ? dir : process.cwd()
}

const tell = (api, found, name, more = {}) =>
  ask({
    hook_event_name: name,
    session_id: found.id,
    session_key: found.key,
    cwd: workspace(api, found),
    ...(found.subagent ? { agent_id: found.subagent, agent_type: "subagent" } : {}),
    ...more,
  })

// Registers a session, once in each process. If tenure did not answer, the next event tries again.
const begin = (api, found) => {
  const session = known(found.id)
  session.key = found.key
  state.ids.set(found.key, found.id)
  session.start ??= tell(api, { ...found, subagent: null }, "session_start").then((answer) => {
    if (typeof answer.foreign === "string") {
      state.owners.set(found.id, answer.foreign)
      refuse(found.id, found.key, answer.foreign)
      state.sessions.delete(found.id)
    } else if (answer.env && typeof answer.env === "object") {
      session.env = answer.env
      state.owners.set(found.id, found.key)
      session.waiting.push(...texts(answer))
    } else {
      session.start = null
    }
  })
  return session
}

// What matters of a tool's parameters.
const input = (params = {}) => ({
  file_path: clipped(params.path ?? params.file_path ?? params.filePath, 4096),
  command: clipped(params.command, 65536),
  workdir: clipped(params.workdir ?? params.cwd, 4096),
  input: clipped(params.input ?? params.patch, 262144),
})

const CHECKED_TOOLS = ["write", "edit", "apply_patch", "exec"]

const refusal = (key, refused) =>
  `tenure refused this message: its session id ${refused.id} belongs to ${refused.owner}, not to ${key}`

const register = (api) => {
  const on = (name, handle, options) => {
    const safely = (event, context) => {
      try {
        const answer = handle(event ?? {}, context ?? {})
        return typeof answer?.catch === "function" ? answer.catch(() => undefined) : answer
      } catch {
        return undefined
      }
    }
    api.on(name, safely, options)
  }

  on("gateway_start", async () => {
    const answer = await ask({ hook_event_name: "gateway_start" })
    for (const [id, key] of Object.entries(answer.owners ?? {})) state.owners.set(id, key)
  })

  on("session_start", (event, context) => {
    const id = event.sessionId ?? context.sessionId
    const key = event.sessionKey ?? context.sessionKey
    if (typeof id !== "string" || typeof key !== "string" || isSubagent(key)) return
    const other = owner(id, key)
    if (!other) {
      state.refused.delete(key)
      begin(api, { id, key, subagent: null, dir: null })
      return
    }
    // A new attempt, which tenure records.
    state.refused.delete(key)
    refuse(id, key, other)
    tell(api, { id, key, subagent: null, dir: null }, "session_start")
  })

  // The only hook that can keep a message out of a transcript. It has no session id and may not wait.
  on("before_message_write", (_, context) => {
    const refused = state.refused.get(context.sessionKey)
    if (!refused) return undefined
    later(() => heal(context.sessionKey, refused), 0)
    return { block: true }
  })

  on("before_agent_reply", (event, context) => {
    const found = whose(event, context)
    if (found) begin(api, found)
    const refused = state.refused.get(context.sessionKey)
    if (found || !refused || refused.id !== context.sessionId) return undefined
    return { handled: true, reply: { text: refusal(context.sessionKey, refused) } }
  })

  on("before_prompt_build", async (event, context) => {
    const found = whose(event, context)
    if (!found) return undefined
    const session = begin(api, found)
    await within(session.start, MAX_MS)
    const isTyped = context.trigger === "user" && !found.subagent
    const answer = await tell(api, found, "before_prompt_build", { prompt: isTyped ? clipped(event.prompt, 1000) : "" })
    const said = [...session.waiting.splice(0), ...texts(answer)]
    return said.length ? { prependContext: said.join("\n\n") } : undefined
  }, { timeoutMs: 2 * MAX_MS + 1000 })

  on("resolve_exec_env", async (event, context) => {
    const found = whose(event, context)
    if (!found) return undefined
    const session = begin(api, found)
    await within(session.start, MAX_MS)
    if (typeof session.env.TENURE_SESSION !== "string") return undefined
    const home = process.env.TENURE_HOME
    return { ...session.env, ...(home ? { TENURE_HOME: home } : {}) }
  }, { timeoutMs: MAX_MS + 1000 })

  on("before_tool_call", async (event, context) => {
    const found = whose(event, context)
    if (!found || !CHECKED_TOOLS.includes(event.toolName)) return undefined
    await within(begin(api, found).start, MAX_MS)
    const answer = await tell(api, found, "before_tool_call", { tool_name: event.toolName, tool_input: input(event.params) })
    if (typeof answer.block === "string" && answer.block) return { block: true, blockReason: answer.block }
    return undefined
  }, { timeoutMs: 2 * MAX_MS + 1000 })

  on("after_tool_call", (event, context) => {
    const found = whose(event, context)
    if (!found || !CHECKED_TOOLS.includes(event.toolName) || event.result?.details?.status === "blocked") return
    begin(api, found)
    tell(api, found, "after_tool_call", { tool_name: event.toolName, tool_input: input(event.params) })
  })

  on("agent_end", (event, context) => {
    const found = whose(event, context)
    if (!found || found.subagent) return
    begin(api, found)
    if (event.success === false) tell(api, found, "agent_failed", { message: clipped(event.error?.message ?? event.error, 1000) })
    else tell(api, found, "agent_end")
  })

  on("subagent_spawned", (event, context) => {
    const [child, parent] = [event.childSessionKey, context.requesterSessionKey]
    if (typeof child !== "string" || typeof parent !== "string") return
    state.parents.set(child, parent)
    const found = whose({}, { sessionKey: child })
    if (found) tell(api, found, "subagent_spawned")
  })

  on("subagent_ended", (event) => {
    if (event.targetKind !== "subagent") return
    const found = whose({}, { sessionKey: event.targetSessionKey })
    if (found) tell(api, found, "subagent_ended")
  })

  // The sessions end with the gateway. `/new` and a reset end nothing: the id stays.
  on("gateway_stop", (event) => {
    const left = [...state.sessions].filter(([, session]) => session.start && session.key)
    const said = left.map(([id, session]) =>
      tell(api, { id, key: session.key, subagent: null, dir: null }, "gateway_stop", { reason: clipped(event.reason, 200) }),
    )
    return within(Promise.all(said), 1000).then(() => undefined)
  })
}

export default { id: "tenure", name: "tenure", description: "sessions, claims and session ids that stay apart", register }
