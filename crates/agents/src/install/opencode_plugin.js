// Written by tenure (`tenure install opencode`); `tenure uninstall opencode` removes it. Edits here are lost.
//
// Sends opencode's events to tenure and returns its answers. Nothing here may delay or fail a turn: each call
// has a limit of two seconds, every failure is ignored, and without tenure the plugin does nothing. The only
// error that it throws on purpose is a block.
import { spawn } from "node:child_process"
import { accessSync, constants } from "node:fs"

const PROGRAM = "PROGRAM"
const ARGUMENTS = ["ARGUMENTS"]
// Whether a person may answer what opencode asks from elsewhere.
const ANSWERS = "ANSWERS"
const MAX_MS = 2000
const MAX_MS_AT_EXIT = 1000
const MAX_CHARS = 1024 * 1024

// Process that waits beside an idle session for messages, by session.
const waiters = new Map()

const isThere = () => {
  try {
    accessSync(PROGRAM, constants.X_OK)
    return true
  } catch {
    return false
  }
}

const parsed = (text) => {
  try {
    const answer = JSON.parse(text)
    return answer && typeof answer === "object" ? answer : {}
  } catch {
    return {}
  }
}

// Calls opencode's client. What that does not have, or what fails, is ignored.
const quietly = async (call) => {
  try {
    await call()
  } catch {}
}

const end = (child) => {
  try {
    child?.kill()
  } catch {}
}

// One event to tenure, one answer back.
const ask = (event) =>
  new Promise((resolve) => {
    let child
    let timer
    let text = ""
    const finish = (answer) => {
      clearTimeout(timer)
      resolve(answer)
    }
    const give_up = () => {
      try {
        child?.kill("SIGKILL")
      } catch {}
      finish({})
    }
    try {
      if (!isThere()) return finish({})
      timer = setTimeout(give_up, MAX_MS)
      child = spawn(PROGRAM, ARGUMENTS, { stdio: ["pipe", "pipe", "ignore"] })
      child.on("error", () => finish({}))
      child.on("close", () => finish(parsed(text)))
      child.stdin.on("error", () => {})
      child.stdout.on("error", () => {})
      child.stdout.setEncoding("utf8")
      child.stdout.on("data", (part) => {
        text += part
        if (text.length > MAX_CHARS) give_up()
      })
      child.stdin.end(JSON.stringify(event))
    } catch {
      give_up()
    }
  })

// A process that waits beside opencode until it has something to say, and ends with it.
const beside = (flag, event, said) => {
  const child = spawn(PROGRAM, [...ARGUMENTS, flag], { stdio: ["pipe", "pipe", "ignore"] })
  let text = ""
  child.on("error", () => said(""))
  child.on("close", () => said(text))
  child.stdin.on("error", () => {})
  child.stdout.on("error", () => {})
  child.stdout.setEncoding("utf8")
  child.stdout.on("data", (part) => {
    text += part
    if (text.length > MAX_CHARS) end(child)
  })
  child.stdin.end(JSON.stringify(event))
  return child
}

// Waits beside a session until tenure prints a message that starts a turn. A newer one ends an older one.
const wait = (client, event) => {
  const id = event.session_id
  try {
    if (waiters.has(id) || !isThere()) return
    const said = (text) => {
      waiters.delete(id)
      const parts = [{ type: "text", text: text.trim() }]
      if (parts[0].text) quietly(() => client.session.promptAsync({ path: { id }, body: { parts } }))
    }
    waiters.set(id, beside("--wait", event, said))
  } catch {}
}

// What opencode asks, offered to its person's other windows, until it is answered here or there.
const offer = (event, answered) => {
  try {
    if (!ANSWERS || !isThere()) return () => {}
    const child = beside("--answers", event, (text) => answered(parsed(text)))
    return () => end(child)
  } catch {
    return () => {}
  }
}

// One plugin per process, even if it is installed for the user and for the project.
const FIRST = Symbol.for("tenure.opencode")

export const Tenure = async ({ client, directory }) => {
  globalThis[FIRST] ??= import.meta.url
  if (globalThis[FIRST] !== import.meta.url) return {}

  // For each session: its parent, the variables for its shell, text that waits for the model's next input, the
  // end of its last call (so that events arrive in order), its start, opencode's title for its work, and whether its
  // person cancelled the turn, or its model is asked again, and when.
  const sessions = new Map()
  const known = (id) => {
    if (!sessions.has(id)) {
      sessions.set(id, { parent: null, env: {}, waiting: [], last: Promise.resolve(), start: null, title: null, cancelled: false, retries: false, next: 0 })
    }
    return sessions.get(id)
  }

  // The last conversation of a person or the caller.
  let current = null

  const tell = (id, name, more = {}) => {
    if (typeof id !== "string") return Promise.resolve({})
    const session = known(id)
    if (!session.parent) current = id
    const event = {
      hook_event_name: name,
      session_id: id,
      parent_id: session.parent,
      cwd: directory ?? process.cwd(),
      ...more,
    }
    session.last = session.last.then(async () => {
      const answer = await ask(event)
      if (answer.env && typeof answer.env === "object") session.env = answer.env
      if (answer.wait === true) wait(client, event)
      if (typeof answer.message === "string" && answer.message) {
        const body = { title: "tenure", message: answer.message, variant: "warning" }
        quietly(() => client.tui.showToast({ body }))
      }
      return answer
    })
    session.last = session.last.catch(() => ({}))
    return session.last
  }

  // What ends the process that waits for an answer, by the id of what opencode asks; until it was answered.
  const offers = new Map()

  const post = (url, id, body) => {
    const said = { url, path: { requestID: id }, headers: { "Content-Type": "application/json" } }
    return client._client.post(body ? { ...said, body } : said)
  }

  // What was answered elsewhere, in opencode's own terms: for this one request, never for those that come after it.
  const replies = {
    permission: (asked, answer) => {
      if (answer.decision === "allow") return post("/permission/{requestID}/reply", asked.id, { reply: "once" })
      if (answer.decision === "deny") {
        return post("/permission/{requestID}/reply", asked.id, { reply: "reject", message: answer.message })
      }
    },
    question: (asked, answer) => {
      if (answer.decision === "answer") return post("/question/{requestID}/reply", asked.id, { answers: answer.answers })
      if (answer.decision === "deny") return post("/question/{requestID}/reject", asked.id)
    },
  }

  // Once tenure knows that the session waits, unless it was answered in opencode by then.
  const offerTo = async (kind, asked, input, told) => {
    if (!ANSWERS || typeof asked.id !== "string" || offers.has(asked.id)) return told
    const not_yet = () => {}
    offers.set(asked.id, not_yet)
    await told
    if (offers.get(asked.id) !== not_yet) return
    if (known(asked.sessionID).parent) {
      offers.delete(asked.id)
      return
    }
    const event = {
      hook_event_name: "PermissionRequest",
      session_id: asked.sessionID,
      cwd: directory ?? process.cwd(),
      ...input,
    }
    const answered = async (answer) => {
      try {
        if (offers.delete(asked.id)) await replies[kind](asked, answer)
      } catch {}
    }
    offers.set(asked.id, offer(event, answered))
  }

  const withdraw = (id) => {
    const withdrawn = offers.get(id)
    if (offers.delete(id)) withdrawn()
  }

  const context = (answer) => (typeof answer.context === "string" && answer.context ? [answer.context] : [])

  // What a permission is for: the command of a shell, the file of any other tool.
  const wanted = (asked) => {
    const about = [asked.metadata?.command, asked.metadata?.filepath, asked.patterns?.[0], asked.pattern]
    const first = about.flat().find((one) => typeof one === "string" && one)
    if (!first) return {}
    return (asked.permission ?? asked.type) === "bash" ? { command: first } : { filePath: first }
  }

  // What opencode reports about a session, if it answers in time.
  const look = async (id) => {
    let timer
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, MAX_MS)
    })
    try {
      const found = await Promise.race([client.session.get({ path: { id } }), late])
      return found?.data ?? {}
    } catch {
      return {}
    } finally {
      clearTimeout(timer)
    }
  }

  // Once for each session in this process. A resumed session is not created again, so its first prompt starts it.
  const start = (id, created) => {
    const session = known(id)
    session.start ??= (async () => {
      const info = created ?? (await look(id))
      session.parent = info.parentID ?? null
      const answer = await tell(id, "SessionStart", { cwd: info.directory ?? directory })
      session.waiting.push(...context(answer))
    })()
    return session.start
  }

  // opencode often reports that a session changed. Until its work has a title, the title is the time.
  const rename = (info) => {
    const session = known(info.id)
    const named = typeof info.title === "string" && info.title && !/^(New|Child) session - /.test(info.title)
    if (info.parentID || !named || session.title === info.title) return
    session.title = info.title
    return tell(info.id, "SessionUpdated", { title: info.title })
  }

  // A turn that failed, or that its person cancelled. opencode also reports that the session is idle.
  const fail = (id, error) => {
    if (typeof id !== "string") return
    // An error before the next attempt was due: its person did not wait for that.
    if (error?.name === "MessageAbortedError" || Date.now() < known(id).next) {
      known(id).cancelled = true
      return tell(id, "Interrupt")
    }
    known(id).retries = false
    return tell(id, "StopFailure", {
      error: error?.data?.statusCode === 429 ? "rate_limit" : (error?.name ?? null),
      error_details: error?.data?.message ?? null,
    })
  }

  // It waits before it asks the model again.
  const retry = (id, status) => {
    if (status?.type !== "retry") return
    known(id).retries = true
    known(id).next = Number(status.next) || 0
    return tell(id, "Retry", { message: status.message ?? null, next_at: status.next ?? null })
  }

  // The first words after that.
  const answered = (part) => {
    const session = sessions.get(part?.sessionID)
    if (!session?.retries || !["text", "reasoning", "tool"].includes(part.type)) return
    session.retries = false
    return tell(part.sessionID, "ModelAnswer")
  }

  // The end of a turn. One that waits to ask its model again ends with an answer or an error, or its person cancelled it.
  const rest = (id) => {
    const session = known(id)
    if (session.retries) session.cancelled = true
    return tell(id, session.cancelled ? "Interrupt" : "Stop")
  }

  // What the person typed.
  const typed = (parts) => {
    const texts = parts.filter((part) => part?.type === "text" && !part.synthetic)
    return texts.map((part) => part.text).join(" ").slice(0, 1000)
  }

  const events = {
    "session.created": ({ info }) => start(info.id, info),
    "session.updated": ({ info }) => rename(info),
    "session.idle": ({ sessionID }) => rest(sessionID),
    "session.error": ({ sessionID, error }) => fail(sessionID, error),
    "session.status": ({ sessionID, status }) => retry(sessionID, status),
    "message.part.updated": ({ part }) => answered(part),
    "session.deleted": ({ info }) => {
      end(waiters.get(info.id))
      sessions.delete(info.id)
    },
    "permission.asked": (asked) => {
      const tool_name = asked.permission ?? asked.type ?? null
      const told = tell(asked.sessionID, "PermissionRequest", { tool_name, tool_input: wanted(asked) })
      const { metadata, patterns } = asked
      const tool_input = { ...wanted(asked), ...metadata, patterns }
      return offerTo("permission", asked, { tool_name, tool_input }, told)
    },
    "permission.replied": ({ sessionID, reply, response, requestID, permissionID }) => {
      withdraw(requestID ?? permissionID)
      if ((reply ?? response) === "reject") known(sessionID).cancelled = true
      return tell(sessionID, "PermissionReply")
    },
    "question.asked": (asked) => {
      const told = tell(asked.sessionID, "PermissionRequest", { tool_name: "question" })
      const input = { tool_name: "question", tool_input: { questions: asked.questions } }
      return offerTo("question", asked, input, told)
    },
    "question.replied": ({ sessionID, requestID }) => {
      withdraw(requestID)
      return tell(sessionID, "PermissionReply")
    },
    "question.rejected": ({ sessionID, requestID }) => {
      withdraw(requestID)
      known(sessionID).cancelled = true
      return tell(sessionID, "PermissionReply")
    },
  }
  events["permission.updated"] = events["permission.asked"]

  return {
    // At an exit, and when opencode reloads its settings. It ends nothing; it announces that the process is about
    // to exit, in case it does. Unsent events go first.
    dispose: async () => {
      let timer
      for (const waiter of waiters.values()) end(waiter)
      const late = new Promise((resolve) => {
        timer = setTimeout(resolve, MAX_MS_AT_EXIT)
      })
      try {
        const said = Promise.all([...sessions.values()].map((session) => session.last))
        await Promise.race([said.then(() => tell(current, "SessionEnd", { reason: "exit" })), late])
      } catch {
      } finally {
        clearTimeout(timer)
      }
    },

    event: async ({ event }) => {
      try {
        await events[event?.type]?.(event.properties ?? {})
      } catch {}
    },

    "chat.message": async (input, output) => {
      try {
        const session = known(input.sessionID)
        session.cancelled = session.retries = false
        session.next = 0
        await start(input.sessionID)
        const answer = await tell(input.sessionID, "UserPromptSubmit", { prompt: typed(output.parts) })
        const texts = [...session.waiting.splice(0), ...context(answer)]
        const last = output.parts.at(-1)
        if (!texts.length || !last) return
        output.parts.push({
          // Sorts after the part that it follows.
          id: `${last.id}0`,
          sessionID: last.sessionID,
          messageID: last.messageID,
          type: "text",
          text: texts.join("\n\n"),
          synthetic: true,
        })
      } catch {}
    },

    "tool.execute.before": async (input, output) => {
      let block
      try {
        const session = known(input.sessionID)
        session.cancelled = false
        const answer = await tell(input.sessionID, "PreToolUse", {
          tool_name: input.tool ?? null,
          tool_input: output?.args ?? {},
        })
        session.waiting.push(...context(answer))
        block = answer.block
      } catch {}
      if (typeof block === "string" && block) throw new Error(block)
    },

    "tool.execute.after": async (input, output) => {
      try {
        const session = known(input.sessionID)
        const answer = await tell(input.sessionID, "PostToolUse", {
          tool_name: input.tool ?? null,
          tool_input: input.args ?? {},
        })
        const texts = [...session.waiting.splice(0), ...context(answer)]
        if (texts.length && typeof output?.output === "string") output.output += `\n\n${texts.join("\n\n")}`
        else session.waiting.push(...texts)
      } catch {}
    },

    "shell.env": async (input, output) => {
      try {
        if (input.sessionID && output?.env) Object.assign(output.env, known(input.sessionID).env)
      } catch {}
    },
  }
}
