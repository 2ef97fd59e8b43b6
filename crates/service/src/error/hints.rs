//! What to do about an error: a command to run, or a plain step.

use super::{Blocker, Error, NoSessionWhy, pids};
use tenure_core::hint::Hint;
use tenure_core::key::Key;
use tenure_core::mission::check::MissionFault;
use tenure_core::store::StoreError;
use tenure_core::text;

impl Error {
    pub fn hints(&self) -> Vec<Hint> {
        match self {
            Error::Malformed(error) => vec![malformed_hint(error.what)],
            Error::Usage { hint, .. }
            | Error::NotFound { hint, .. }
            | Error::Invalid { hint, .. } => vec![hint.clone()],
            Error::NoSession { why } => no_session_hints(why),
            Error::NoSuchSession { .. } => {
                vec![Hint::run("ps", ["--all"], "to list every session")]
            }
            Error::Ambiguous { by_name, .. } => vec![Hint::step(if *by_name {
                "use the whole handle of one of them"
            } else {
                "add --session HANDLE to choose one of them"
            })],
            Error::Superseded { .. } => {
                vec![Hint::verb(
                    "register",
                    "to register this process as a new session",
                )]
            }
            Error::ReasonNeeded { .. } => vec![add_a_reason()],
            Error::OwnSessionOnly { handle, .. } => vec![
                Hint::step(format!("run it inside {handle}, without --session")),
                Hint::run("tell", [handle, "MESSAGE"], "to ask it to do so"),
            ],
            Error::PersonOnly { .. } => vec![Hint::step("ask the person you work for")],
            Error::Unreachable { .. } => {
                vec![Hint::verb("ps", "to see which sessions are live")]
            }
            Error::NotLive { handle, .. } | Error::NothingToDismiss { handle, .. } => {
                vec![Hint::run("show", [handle], "for details")]
            }
            Error::Unread { handle, .. } => {
                vec![Hint::run("show", [handle], "to see whether it still works")]
            }
            Error::StillRunning {
                handle,
                running: Blocker::Unreachable,
                ..
            } => vec![
                end_and_kill(handle),
                Hint::run("show", [handle], "for details"),
            ],
            Error::StillRunning {
                handle,
                running: Blocker::Daemon,
                ..
            } => vec![
                Hint::run("wait", [handle], "to wait until the turn is over"),
                Hint::run("show", [handle], "for details"),
            ],
            Error::NotOver { handle } => vec![
                Hint::run(
                    "end",
                    [handle, "--kill", "--kill-survivors", "--reason", "REASON"],
                    "to end it and what it leaves running",
                ),
                Hint::run("show", [handle], "for details"),
            ],
            Error::SurvivorsUnseen { handle, host, .. } => vec![match host {
                Some(host) => Hint::step(format!("run the same command on {}", text::name(host))),
                None => Hint::run("show", [handle], "to see where it ran"),
            }],
            Error::StillRunning { handle, .. } => vec![
                Hint::run("goto", [handle], "to go to its window"),
                Hint::run("show", [handle], "to see where it is"),
            ],
            Error::CannotTell { handle, key, .. } => {
                let mut hints = vec![Hint::run(
                    "show",
                    [handle],
                    "to see what tenure knows about it",
                )];
                if let Some(key) = key {
                    hints.push(Hint::step("run the claim outside the sandbox"));
                    hints.push(take_over(key.as_str()));
                }
                hints
            }
            Error::Held { key, .. }
            | Error::ChangedHands { key, .. }
            | Error::Suspect { key, .. } => held_hints(key.as_str(), key.as_str()),
            Error::Overlaps { key, claim } => held_hints(key.as_str(), &claim.key),
            Error::LeftRunning {
                key,
                survivors,
                handle,
            } => {
                let inspect = Hint::step(format!(
                    "run `ps -o pid,lstart,args -p {}` to inspect them",
                    pids(survivors).replace(' ', "")
                ));
                let can_end = survivors.iter().any(|one| one.can_end);
                let args = [handle.as_str(), "--kill-survivors"];
                let end = Hint::run("end", args, "to end what it left running");
                let end = can_end.then_some(end);
                [inspect]
                    .into_iter()
                    .chain(end)
                    .chain([allow_survivors(key)])
                    .collect()
            }
            Error::MaybeLeftRunning { key, .. } => vec![
                Hint::run("why", [key.as_str()], "for details"),
                allow_survivors(key),
            ],
            Error::NoneFree { first, .. } | Error::TimedOut { why: first, .. } => first.hints(),
            Error::Done { key, .. } => vec![
                Hint::run("log", [key.as_str()], "to see who finished it"),
                Hint::run("claim", [key.as_str(), "--reopen"], "to reopen it"),
            ],
            Error::AlreadyHeld { key, .. } => {
                vec![Hint::run("release", [key.as_str()], "to release it")]
            }
            Error::Free { key } => vec![Hint::run("claim", [key.as_str()], "to claim it")],
            Error::Lost { key, claim, .. } => vec![
                Hint::step(match claim.holder {
                    Some(_) => {
                        "stop working on it; further changes may conflict with the new holder"
                    }
                    None => "stop working on it until you have claimed it again",
                }),
                Hint::run("log", [key.as_str()], "to see what happened"),
            ],
            Error::LostBefore { claims } => {
                let first = claims.first().map_or("KEY", |claim| claim.key.as_str());
                vec![
                    wait_for(first),
                    Hint::run("claim", ["KEY"], "to claim the item that you work on now"),
                    Hint::run("log", [first], "to see what happened"),
                ]
            }
            Error::NoSuchEpoch { key, .. } => {
                vec![Hint::run("why", [key.as_str()], "to see its current epoch")]
            }
            Error::Faulty { faults, .. } => fault_hints(faults),
            Error::NoMission { passed_over, .. } => {
                let mut hints = fault_hints(passed_over);
                if hints.is_empty() {
                    let join = ["join", "MISSION", "--role", "ROLE"];
                    hints.push(Hint::run("mission", join, "to join one and make it active"));
                }
                hints.push(Hint::step("add --mission MISSION to name one"));
                hints
            }
            Error::Collision { mission, .. } => vec![
                Hint::run(
                    "mission",
                    ["status", "--mission", mission],
                    "to see who works on what",
                ),
                Hint::step("omit --strict to get a warning instead"),
            ],
            Error::Revised { now, .. } => {
                let (agent, item) = (now.agent.as_str(), now.item.as_str());
                vec![
                    Hint::run("conversation", ["get", agent, item], "to see it"),
                    Hint::run(
                        "conversation",
                        ["history", agent, item],
                        "to see who set it",
                    ),
                ]
            }
            Error::InRun {
                item,
                run,
                can_stop,
                ..
            } => {
                let show = ["show", run.as_str()];
                let mut hints = vec![Hint::run("runs", show, "for details")];
                hints.push(if *can_stop {
                    let args = ["drop", item.as_str(), "--stop"];
                    Hint::run("conversation", args, "to stop the run first")
                } else {
                    Hint::step("wait until the run has ended")
                });
                hints
            }
            Error::Linked { item, root } => vec![
                Hint::run(
                    "conversation",
                    ["list", "--item", root.as_str()],
                    "to see them",
                ),
                Hint::run(
                    "conversation",
                    ["unlink", item.as_str()],
                    "to give it conversations of its own again",
                ),
            ],
            Error::Run(error) => error.hints(),
            Error::Queue(error) => error.hints(),
            Error::Store(error) => store_hints(error),
        }
    }
}

/// The hints of all faults, without duplicates.
fn fault_hints(faults: &[MissionFault]) -> Vec<Hint> {
    let mut hints: Vec<Hint> = Vec::new();
    for hint in faults.iter().flat_map(|fault| &fault.hints) {
        if !hints.contains(hint) {
            hints.push(hint.clone());
        }
    }
    hints
}

/// For an act that needs a reason.
pub fn add_a_reason() -> Hint {
    Hint::step("add --reason REASON (it is logged)")
}

/// How to end an agent that outlived its window.
pub fn end_and_kill(handle: &str) -> Hint {
    let args = [handle, "--kill", "--reason", "its window was closed"];
    let why = "to end it; then its conversation can be resumed";
    Hint::run("end", args, why)
}

/// How to wait for a key.
pub fn wait_for(key: &str) -> Hint {
    Hint::run("claim", [key, "--wait", "10m"], "to wait for it")
}

/// How to take a key from a live session.
pub fn take_over(key: &str) -> Hint {
    let args = [key, "--reason", "REASON"];
    Hint::run("takeover", args, "to take it anyway (logged)")
}

/// How to get `wanted` while `held` is in the way.
fn held_hints(wanted: &str, held: &str) -> Vec<Hint> {
    vec![
        wait_for(wanted),
        Hint::run("why", [held], "for details"),
        take_over(held),
    ]
}

fn allow_survivors(key: &Key) -> Hint {
    let args = ["--any", key.as_str(), "--allow-survivors"];
    Hint::run("claim", args, "to take it anyway")
}

fn malformed_hint(what: &str) -> Hint {
    Hint::step(match what {
        "key" => {
            "use a key such as issue:acme/web#42 or wp:041/WP03; in a repository also #42 or path:src/**"
        }
        "duration" => "use a duration such as 500ms, 90s, 5m, 1h30m or 2d",
        "agent name" => "use an agent name such as claude or my-agent",
        "mission id" => "use a mission id such as 041-login, never a path",
        "participant id" => "omit --participant to have one generated",
        "role" => "use a role such as developer or reviewer",
        "focus" => "use a focus such as wp:WP01, step:42 or none",
        "drive" => "use active or inactive",
        "request id" => "use a request id such as build-1234",
        "metadata key" => "use a key such as team or build.number",
        "native id" => "use the agent's own id for the conversation",
        "message" | "note" | "title" => "make it shorter",
        _ => return Hint::run("help", ["COMMAND"], "for its options and examples"),
    })
}

fn no_session_hints(why: &NoSessionWhy) -> Vec<Hint> {
    let mut hints = match why {
        NoSessionWhy::UnregisteredAgent { agent, .. } => {
            vec![Hint::run("register", ["--agent", agent], "to register it")]
        }
        NoSessionWhy::EndedHere { .. } => {
            vec![Hint::verb("register", "to continue as the same session")]
        }
        NoSessionWhy::NotInside | NoSessionWhy::BrokenWalk(_) | NoSessionWhy::Variable(_) => vec![
            Hint::verb("register", "to make this shell or agent a session"),
            register_script(),
        ],
    };
    hints.push(Hint::step(
        "add --session NAME --reason REASON to act for an existing session",
    ));
    hints
}

/// How to register a script.
pub fn register_script() -> Hint {
    let args = ["--agent", "NAME", "--pid", "PID"];
    Hint::run("register", args, "in a script, where PID is $$")
}

fn store_hints(error: &StoreError) -> Vec<Hint> {
    let steps = match error {
        StoreError::Busy { .. } | StoreError::Conflict => {
            vec!["run the command again; nothing was changed".into()]
        }
        StoreError::Full { .. } => {
            vec!["free some space on that disk, then run the command again".into()]
        }
        StoreError::NotOwner { .. } => {
            let ask = "ask the person who uses that role to do it";
            let claims = "to see how to get a claim that the session holds";
            return vec![Hint::step(ask), Hint::run("why", ["KEY"], claims)];
        }
        StoreError::Unavailable { .. } | StoreError::Interrupted { .. } => {
            return vec![Hint::verb(
                "config",
                "to see where the store is and which setting decides that",
            )];
        }
        StoreError::Damaged { store, .. } if store.contains("://") => {
            vec!["restore the database from a backup".into()]
        }
        StoreError::Damaged { store, .. } => vec![
            format!(
                "first run `cp -p {}* BACKUP_DIR/` to keep a copy",
                text::shell(store)
            ),
            "then restore a good copy, or set TENURE_HOME to a new directory to continue \
             without it"
                .into(),
        ],
        StoreError::LogLost { store, log, .. } => vec![
            format!("put {log} back; if a process still has it open, copy it from /proc/PID/fd"),
            format!(
                "if it is lost for good, run `rm {}` to continue without its changes; this raises \
                 every epoch",
                text::shell(&format!("{store}-shm"))
            ),
        ],
        StoreError::Replaced { .. } => {
            vec!["run the command again to use the store that is there now".into()]
        }
        StoreError::OutcomeUnknown { .. } => {
            return vec![Hint::verb(
                "status",
                "to see what was stored, before you repeat the command",
            )];
        }
        StoreError::Moved { to, .. } => vec![format!(
            "set TENURE_STORE, or store in config.toml, to {to}"
        )],
        StoreError::Unfinished { store, from } => {
            return vec![Hint::run(
                "store",
                ["copy".to_owned(), from.clone(), store.clone()],
                "to finish it",
            )];
        }
        StoreError::Unmigrated { .. } => {
            return vec![Hint::run(
                "store",
                ["migrate"],
                "to create or update its schema, as a role that may create tables",
            )];
        }
        StoreError::InUse { .. } => {
            return vec![Hint::run(
                "keeper",
                ["stop"],
                "on those machines, once this version is installed there",
            )];
        }
        StoreError::TooNew { needs, .. } => vec![format!("install tenure {needs} or later")],
    };
    steps.into_iter().map(Hint::step).collect()
}
