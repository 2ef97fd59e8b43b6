//! What other commands check is asked of them, in processes of their own: a check that crashes takes nothing along.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use tenure_app::agent_hooks::{self, AgentHooks, NotChecked, UNREADABLE};
use tenure_app::own_command::{ask, program};
use tenure_app::settings::user_dir;
use tenure_host::env;

use crate::command::text;
use crate::finding::{Finding, Found, Repair};
use crate::patient::Patient;

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn not_asked(command: &str, why: String) -> Vec<Finding> {
    vec![Finding::error("check_failed", format!("`tenure {command}` gave no answer")).seen(why)]
}

pub fn own_identity(_: &mut Patient) -> Found {
    let (code, said) = match ask(&["verify"]) {
        Ok(answer) => answer,
        Err(why) => return Ok(not_asked("verify", why)),
    };
    // A person has no session, which is not a fault.
    if code != 6 {
        return Ok(Vec::new());
    }
    let mut finding = Finding::error("identity_wrong", text(&said["error"]["message"])).advise(
        "`tenure whoami -v` says what decided; start the agent again without that variable",
    );
    for fault in list(&said["error"]["faults"]) {
        finding = finding.seen(
            fault
                .as_str()
                .map_or_else(|| fault.to_string(), str::to_owned),
        );
    }
    Ok(vec![finding])
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
    Finding::error("hooks_unreadable", message).advise("correct that file")
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
        "outdated" => {
            let what = format!("the hooks of {name} are not complete, or run another tenure");
            let finding = of("hooks_outdated", what);
            Some(if agent.command.is_some() {
                finding.repaired_by(Repair::Run(vec!["install".to_owned(), name.clone()]))
            } else {
                finding.advise(format!("run `tenure install {name}` there"))
            })
        }
        "not_installed" => {
            let what = format!("{name} is here and has no hooks, so its sessions are not seen");
            Some(of("hooks_missing", what).advise(format!("run `tenure install {name}`")))
        }
        _ if agent.is_untrusted() => {
            let what = format!("{name} does not run the hooks: they are not trusted");
            Some(of("hooks_untrusted", what).advise("trust them in the agent"))
        }
        _ => None,
    }
}

pub fn openclaw(_: &mut Patient) -> Found {
    let (code, said) = match ask(&["verify", "--openclaw"]) {
        Ok(answer) => answer,
        Err(why) => return Ok(not_asked("verify --openclaw", why)),
    };
    if code == 4 {
        return Ok(Vec::new());
    }
    let faults = list(&said["openclaw"]["faults"]);
    Ok(faults
        .map(|fault| {
            let repair = ["verify", "--openclaw", "--fix"].map(str::to_owned);
            Finding::error("openclaw_wrong", text(&fault["what"]))
                .seen(text(&fault["file"]))
                .repaired_by(Repair::Run(repair.to_vec()))
        })
        .collect())
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
        Finding::error("program_beside", what)
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
    let Some(message) = said["error"]["message"].as_str() else {
        return Ok(Vec::new());
    };
    let mut finding = Finding::error("dispatch_config", message)
        .advise("correct dispatch.toml; `tenure dispatch check` shows every line");
    for fault in list(&said["error"]["dispatch_faults"]) {
        finding = finding.seen(format!("line {}: {}", fault["line"], text(&fault["why"])));
    }
    Ok(vec![finding])
}
