//! What other commands check: by the same use cases, or in processes of their own where this crate cannot call them.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use tenure_app::agent_hooks::{self, AgentHooks, NotChecked, UNREADABLE};
use tenure_app::openclaw::{self, Repairs};
use tenure_app::own_command::{ask, program};
use tenure_app::settings::user_dir;
use tenure_host::env;
use tenure_service::ActFor;
use tenure_service::answer::{Class, Problem};

use crate::code::Code;
use crate::command::text;
use crate::finding::{Finding, Found, Repair};
use crate::patient::Patient;

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn not_asked(command: &str, why: String) -> Vec<Finding> {
    let what = format!("`tenure {command}` gave no answer");
    vec![
        Finding::error(Code::CheckFailed, what)
            .seen(why)
            .advise(format!("run `tenure {command}`")),
    ]
}

/// Whether the session that runs doctor is the one that its environment names.
pub fn own_identity(patient: &mut Patient) -> Found {
    let context = patient.store()?;
    let here = context.here();
    let verified = match context
        .service()
        .verify(&ActFor::default(), &here, None, None)
    {
        Ok(answer) => answer.value,
        Err(failure) => {
            let problem = Problem::from(failure);
            // A person has no session, which is not a fault.
            return match problem.class {
                Class::Invalid => Ok(vec![identity(problem.message)]),
                _ => Ok(Vec::new()),
            };
        }
    };
    if verified.faults.is_empty() {
        return Ok(Vec::new());
    }
    let mut finding = identity(format!(
        "the session {} is not as it should be",
        verified.context.session.handle
    ));
    finding.evidence = verified.faults.iter().map(ToString::to_string).collect();
    Ok(vec![finding])
}

fn identity(what: String) -> Finding {
    Finding::error(Code::IdentityWrong, what)
        .advise("`tenure whoami -v` says what decided; start the agent again without that variable")
}

pub fn hooks(_: &mut Patient) -> Found {
    let agents = match agent_hooks::check() {
        Ok(agents) => agents,
        Err(NotChecked::NoAnswer(why)) => return Ok(not_asked("install --check", why)),
        Err(NotChecked::Refused(message)) => return Ok(vec![not_read(message)]),
    };
    Ok(agents.iter().filter_map(hooks_of).collect())
}

fn not_read(message: String) -> Finding {
    Finding::error(Code::HooksUnreadable, message).advise("correct that file")
}

fn hooks_of(agent: &AgentHooks) -> Option<Finding> {
    let name = &agent.agent;
    let of = |code, what: String| {
        let mut finding = Finding::warning(code, what).seen(agent.file.clone());
        finding.evidence.extend(agent.notes.iter().cloned());
        finding
    };
    match agent.state.as_str() {
        UNREADABLE => Some(not_read(agent.notes.join("; "))),
        "outdated" => Some(outdated(agent, &of)),
        "not_installed" => {
            let what = format!("{name} is here and has no hooks, so its sessions are not seen");
            Some(of(Code::HooksMissing, what).advise(format!("run `tenure install {name}`")))
        }
        _ if agent.is_untrusted() => {
            let what = format!("{name} does not run the hooks: they are not trusted");
            Some(of(Code::HooksUntrusted, what).advise("trust them in the agent"))
        }
        _ => None,
    }
}

pub fn openclaw(patient: &mut Patient) -> Found {
    let Some(dir) = openclaw::dir_here() else {
        return Ok(Vec::new());
    };
    let faults = openclaw::verify(patient.store()?, &dir, Repairs::Nothing)?;
    Ok(faults
        .iter()
        .map(|fault| {
            let repair = ["verify", "--openclaw", "--fix"].map(str::to_owned);
            Finding::error(Code::OpenclawWrong, &fault.what)
                .seen(&fault.file)
                .repaired_by(Repair::Run(repair.to_vec()))
        })
        .collect())
}

/// What is wrong with hooks that are there and are not as they should be.
fn outdated(agent: &AgentHooks, of: &dyn Fn(Code, String) -> Finding) -> Finding {
    let name = &agent.agent;
    let finding = match &agent.gone {
        Some(gone) => of(
            Code::HooksDead,
            format!("no hook of {name} runs: {gone} is gone"),
        ),
        None if !agent.doubled.is_empty() => of(
            Code::HooksDuplicated,
            format!(
                "{name} runs the hooks of {} twice",
                agent.doubled.join(", ")
            ),
        ),
        None => of(
            Code::HooksOutdated,
            format!("the hooks of {name} are not complete, or run another tenure"),
        ),
    };
    if agent.command.is_some() {
        finding.repaired_by(Repair::Run(vec!["install".to_owned(), name.clone()]))
    } else {
        finding.advise(format!("run `tenure install {name}` there"))
    }
}

/// The program for stores on servers and the dispatcher, of the same version as this one.
pub fn program_beside(_: &mut Patient) -> Found {
    let Ok(own) = program() else {
        return Ok(Vec::new());
    };
    let beside = own.with_file_name("tenure-server");
    if !beside.exists() {
        // Only stores on servers, the dispatcher, serve and mcp need it, and say so.
        return Ok(Vec::new());
    }
    let version = |program: &PathBuf| {
        let said = Command::new(program)
            .arg("--version")
            .stdin(Stdio::null())
            .output();
        let said = said.map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&said.stdout).trim().to_owned();
        text.rsplit(' ')
            .next()
            .map(str::to_owned)
            .ok_or_else(String::new)
    };
    let (one, other) = (version(&own), version(&beside));
    if one.is_ok() && one == other {
        return Ok(Vec::new());
    }
    let what = format!("{} is not of the same version as tenure", beside.display());
    let shown = |found: Result<String, String>| found.unwrap_or_else(|why| why);
    Ok(vec![
        Finding::error(Code::ProgramBeside, what)
            .seen(format!("{} and {}", shown(one), shown(other)))
            .advise("install both programs from one version"),
    ])
}

pub fn dispatch_config(_: &mut Patient) -> Found {
    let file = user_dir(&env::var).map(|dir| dir.join("dispatch.toml"));
    if !file.is_some_and(|file| file.exists()) {
        return Ok(Vec::new());
    }
    let (_, said) = match ask(&["dispatch", "check"]) {
        Ok(answer) => answer,
        Err(why) => return Ok(not_asked("dispatch check", why)),
    };
    let error = &said["error"];
    let Some(message) = error["message"].as_str() else {
        return Ok(Vec::new());
    };
    let shown = |fault: &Value| format!("line {}: {}", fault["line"], text(&fault["why"]));
    let is_wrap = |fault: &&Value| text(&fault["key"]).ends_with(": wrap");
    let (wraps, others): (Vec<&Value>, Vec<&Value>) =
        list(&error["dispatch_faults"]).partition(is_wrap);
    let mut found: Vec<Finding> = wraps
        .into_iter()
        .map(|fault| {
            let what = format!(
                "the wrap of {} does not start",
                rule_of(&text(&fault["key"]))
            );
            Finding::error(Code::WrapFails, what)
                .seen(shown(fault))
                .advise("its runs do not start either; `tenure dispatch check` tries it again")
        })
        .collect();
    if !others.is_empty() || found.is_empty() {
        let mut finding = Finding::error(Code::DispatchConfig, message)
            .advise("correct dispatch.toml; `tenure dispatch check` shows every line");
        finding.evidence = others.into_iter().map(shown).collect();
        found.push(finding);
    }
    Ok(found)
}

/// `rule 2` of `rule 2: wrap`.
fn rule_of(key: &str) -> &str {
    key.split(':').next().unwrap_or(key)
}
