//! `claude --bg`, `claude agents` and their service (tested with 2.1.325).
//!
//! Its processes share one executable: the service (`claude daemon run`, reparented to 1 or below whatever
//! first asked for it), a terminal host for each session (`--bg-pty-host`), and below that the session itself.
//! One spare is always started in advance (`--bg-spare`); given a prompt it becomes a session in the same
//! process with the same arguments. `claude agents` gives such a spare a conversation before anyone typed
//! anything: its start reaches the hooks, the registry shows `spare`, and its own list does not show it.
//!
//! kill -9 of a session: the service restarts it after about ten seconds (`--resume FILE`, same conversation).
//! kill -9 of the service: its sessions continue, and the next service adopts them. `claude stop` ends one,
//! sends SessionEnd "other" like a signal, removes it from the roster, and only then writes into the job's file
//! that it was stopped. A job is named by the first eight characters of its conversation. Claude itself refuses `claude --resume` of a
//! running session. `claude attach` is a viewer: it sends no event and has no entry in the registry.

use serde_json::Value;
use tenure_core::id::NativeId;

use crate::background::{Background, BackgroundJob};

pub(crate) const BACKGROUND: Background = Background {
    roster: "daemon/roster.json",
    job_file: "jobs/NAME/state.json",
    is_over: |state| state["state"] == "stopped",
    conversation: "sessionId",
    changed_at: "updatedAt",
    service: "Claude's background service",
    of_registry,
    of_roster,
    name_of: |conversation| plain(conversation.as_str().get(..8)?),
    attach: ["claude", "attach"],
    stop: ["claude", "stop"],
};

fn of_registry(entry: &Value) -> Option<BackgroundJob> {
    if entry["kind"] != "bg" {
        return None;
    }
    Some(BackgroundJob {
        name: plain(entry["jobId"].as_str()?)?,
        waits_for_work: entry["spare"] == true,
    })
}

fn of_roster(roster: &Value, conversation: &NativeId) -> Option<String> {
    let jobs = roster["workers"].as_object()?;
    let has_it = |job: &Value| job["sessionId"] == conversation.as_str();
    let (name, _) = jobs.iter().find(|(_, job)| has_it(job))?;
    plain(name)
}

/// The name becomes a word of a command line, so only the service's own form is accepted.
fn plain(name: &str) -> Option<String> {
    let is_plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_plain.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &str =
        include_str!("../tests/background/claude-2.1.325/registry.background.json");
    const SPARE: &str = include_str!("../tests/background/claude-2.1.325/registry.spare.json");
    const ROSTER: &str = include_str!("../tests/background/claude-2.1.325/roster.json");

    fn id(text: &str) -> NativeId {
        NativeId::parse(text).unwrap()
    }

    #[test]
    fn a_session_of_the_service_is_known_by_its_entry() {
        let job = BACKGROUND.job(SESSION).unwrap();
        assert_eq!((job.name.as_str(), job.waits_for_work), ("e76ac0d2", false));
        assert!(BACKGROUND.job(SPARE).unwrap().waits_for_work);
        let at_terminal = SESSION.replace("\"bg\"", "\"interactive\"");
        assert_eq!(BACKGROUND.job(&at_terminal), None);
        assert_eq!(BACKGROUND.job("{}"), None);
    }

    #[test]
    fn what_the_service_keeps_is_found_by_its_conversation() {
        let kept = |text| BACKGROUND.kept(ROSTER, &id(text));
        let first = kept("e76ac0d2-dbb9-456a-86d4-c254d00a468b");
        assert_eq!(first.as_deref(), Some("e76ac0d2"));
        // This one was stopped.
        assert_eq!(kept("50bd11c8-cf0e-40b4-8371-91813069d60f"), None);
        assert_eq!(BACKGROUND.kept("", &id("e76ac0d2")), None);
    }

    #[test]
    fn a_job_that_was_stopped_is_over() {
        let is_over = |file: &str| BACKGROUND.is_over(file);
        let stopped = include_str!("../tests/background/claude-2.1.325/job.stopped.json");
        assert!(is_over(stopped));
        assert!(!is_over(include_str!(
            "../tests/background/claude-2.1.325/job.working.json"
        )));
        assert!(!is_over(&stopped.replace("\"stopped\"", "\"crashed\"")));
        assert!(!is_over(""));
        let own = id("50bd11c8-cf0e-40b4-8371-91813069d60f");
        assert_eq!(BACKGROUND.job_of(&own).as_deref(), Some("50bd11c8"));
        let at = BACKGROUND.stopped_at(stopped, &own);
        assert_eq!(at, "2026-11-15T23:02:54.535Z".parse().ok());
        let other = id("50bd11c8-cf0e-40b4-8371-000000000000");
        assert_eq!(BACKGROUND.stopped_at(stopped, &other), None);
        assert_eq!(
            BACKGROUND.stopped_at(&stopped.replace("\"stopped\"", "\"working\""), &own),
            None
        );
        assert_eq!(BACKGROUND.job_file("e76ac0d2"), "jobs/e76ac0d2/state.json");
    }

    #[test]
    fn it_is_opened_and_ended_by_its_own_commands() {
        assert_eq!(
            BACKGROUND.attach("e76ac0d2"),
            ["claude", "attach", "e76ac0d2"]
        );
        assert_eq!(BACKGROUND.stop("e76ac0d2"), ["claude", "stop", "e76ac0d2"]);
        let odd = SESSION.replace("\"jobId\":\"e76ac0d2\"", "\"jobId\":\"-x; rm\"");
        assert_eq!(BACKGROUND.job(&odd), None);
    }
}
