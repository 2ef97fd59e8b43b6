//! Sessions, what they hold, their transcripts, conversations and mirrors.

use tenure_app::{mirror, transcript};
use tenure_service::ListRequest;
use tenure_service::answer::Problem;
use tenure_service::view::SessionView;

use crate::code::Code;
use crate::finding::{Finding, Found, Repair, several};
use crate::patient::Patient;

/// How many sessions have their transcripts read.
const READ: usize = 50;
/// How many ended sessions are looked at.
const ENDED: usize = 100;
/// How many names a finding lists.
const NAMED: usize = 8;

/// Sessions that are open, though it is proved that their processes are gone.
pub fn dead_but_open(patient: &mut Patient) -> Found {
    let dead = patient.store()?.service().dead_sessions()?.value;
    if dead.is_empty() {
        return Ok(Vec::new());
    }
    let what = format!(
        "{} still open, and the process is dead",
        several(dead.len(), "session")
    );
    let mut finding =
        Finding::warning(Code::SessionDeadOpen, what).repaired_by(Repair::RecordDeaths);
    for one in dead.iter().take(NAMED) {
        finding = finding.seen(format!("{}: {}", one.handle, one.why));
    }
    Ok(vec![finding])
}

fn open_sessions(patient: &mut Patient) -> Result<Vec<SessionView>, Problem> {
    let context = patient.store()?;
    let listed = context.service().list(&ListRequest::default())?;
    Ok(listed.value.items)
}

pub fn unreadable_rows(patient: &mut Patient) -> Found {
    let context = patient.store()?;
    let listed = context.service().list(&ListRequest {
        closed_too: true,
        limit: 1000,
        ..ListRequest::default()
    })?;
    let damaged = listed.damaged.map(|damaged| {
        Finding::error(
            Code::RowsUnreadable,
            "rows of the store cannot be read, and are left out of lists",
        )
        .seen(damaged.to_string())
        .advise("a newer tenure may read them; a person can restore a backup")
    });
    Ok(damaged.into_iter().collect())
}

/// One finding for each of these sessions.
fn each(patient: &mut Patient, judged: impl Fn(&SessionView) -> Option<Finding>) -> Found {
    Ok(open_sessions(patient)?.iter().filter_map(judged).collect())
}

pub fn twins(patient: &mut Patient) -> Found {
    each(patient, |session| {
        session.twin_of.as_ref()?;
        let what = format!(
            "{} is in a conversation that another live session has",
            session.handle
        );
        Some(
            Finding::warning(Code::SessionTwin, what)
                .seen(&session.why)
                .advise("leave the conversation in one of the two: both write the same transcript"),
        )
    })
}

/// What dead sessions left running: it may still write.
pub fn survivors(patient: &mut Patient) -> Found {
    let context = patient.store()?;
    let listed = context.service().list(&ListRequest {
        closed_too: true,
        limit: ENDED,
        ..ListRequest::default()
    })?;
    let left = listed.value.items.iter().filter_map(|session| {
        let left = session.survivors.as_ref().filter(|left| !left.is_empty())?;
        let what = format!("{} is over, and what it started still runs", session.handle);
        let mut finding = Finding::warning(Code::SessionSurvivors, what)
            .advise("a person can end them; until then they may write");
        for one in left.iter().take(NAMED) {
            finding = finding.seen(format!("{}: {}", one.pid, one.command));
        }
        Some(finding)
    });
    Ok(left.collect())
}

fn held(session: &SessionView) -> Option<String> {
    let claims = session
        .claims
        .as_ref()
        .filter(|claims| !claims.is_empty())?;
    let keys: Vec<&str> = claims
        .iter()
        .take(NAMED)
        .map(|one| one.key.as_str())
        .collect();
    Some(keys.join(", "))
}

/// A live holder is never robbed, so one that does nothing holds its items until a person acts.
pub fn silent_holders(patient: &mut Patient) -> Found {
    each(patient, |session| {
        let keys = (session.state == "stalled")
            .then(|| held(session))
            .flatten()?;
        let what = format!("{} lives and is silent, and holds {keys}", session.handle);
        Some(
            Finding::warning(Code::HolderSilent, what)
                .seen(&session.why)
                .advise("look at its window; a person can take its items over, with a reason"),
        )
    })
}

pub fn doubtful_holders(patient: &mut Patient) -> Found {
    each(patient, |session| {
        let keys = (session.state == "unknown")
            .then(|| held(session))
            .flatten()?;
        let what = format!(
            "nobody here can tell whether {} lives, and it holds {keys}",
            session.handle
        );
        Some(
            Finding::warning(Code::HolderUnknown, what)
                .seen(&session.why)
                .advise("its lease decides; `tenure why KEY` says until when"),
        )
    })
}

pub fn lost_claims(patient: &mut Patient) -> Found {
    each(patient, |session| {
        let lost = session.lost.as_ref().filter(|lost| !lost.is_empty())?;
        let what = format!(
            "{} lost {} and was not told yet",
            session.handle,
            lost.join(", ")
        );
        Some(
            Finding::warning(Code::ClaimLostUntold, what)
                .advise("it is told at its next hook or command; until then it may go on writing"),
        )
    })
}

pub fn collisions(patient: &mut Patient) -> Found {
    each(patient, |session| {
        let others = session
            .collides_with
            .as_ref()
            .filter(|all| !all.is_empty())?;
        // Each pair once.
        let first = others.iter().find(|other| **other > session.handle)?;
        let what = format!(
            "{} and {first} share a file, a focus or a conversation",
            session.handle
        );
        Some(
            Finding::warning(Code::SessionsCollide, what).advise(format!(
                "`tenure show {}` says what they share",
                session.handle
            )),
        )
    })
}

pub fn transcripts(patient: &mut Patient) -> Found {
    let handles: Vec<String> = open_sessions(patient)?
        .into_iter()
        .filter(|session| session.native_id.is_some())
        .map(|session| session.handle)
        .take(READ)
        .collect();
    let mut found = Vec::new();
    for handle in handles {
        let Ok(checked) = transcript::verify(patient.store()?, &handle) else {
            // The agent wrote none yet, or tenure does not know where.
            continue;
        };
        let (file, survey) = checked.value;
        if let Some(why) = file.quarantined {
            let what = format!("the transcript path that {handle} had was another session's");
            found.push(
                Finding::error(Code::TranscriptForeign, what)
                    .seen(why)
                    .advise("the path is set aside; tenure looks for the session's own file"),
            );
        }
        if survey.problems.is_empty() {
            continue;
        }
        let what = format!(
            "{} of the transcript of {handle}: damaged, or of another conversation",
            several(survey.problems.len() + survey.more, "line")
        );
        let mut finding = Finding::error(Code::TranscriptDamaged, what).advise(format!(
            "`tenure transcript verify {handle}` lists them; a person can repair it"
        ));
        for problem in survey.problems.iter().take(NAMED) {
            finding = finding.seen(format!(
                "{}, line {}: {}: {}",
                file.file.path, problem.line, problem.kind, problem.what
            ));
        }
        found.push(finding);
    }
    Ok(found)
}

pub fn conversations(patient: &mut Patient) -> Found {
    let gone = patient.store()?.service().dead_pointers()?.value;
    let gone = gone.iter().map(|one| {
        let what = format!(
            "{} no longer has its conversation of {}",
            one.agent, one.root
        );
        let finding = Finding::warning(Code::ConversationGone, what)
            .advise("the next run begins a new one; a file that comes back is resumed");
        match &one.native_id {
            Some(id) => finding.seen(format!("its id is {id}")),
            None => finding,
        }
    });
    Ok(gone.collect())
}

pub fn mirrors(patient: &mut Patient) -> Found {
    let failed = patient.store()?.service().mirror_failures()?.value;
    let failed = failed.iter().map(|one| {
        let what = format!("the mirror {} is not up to date", one.path);
        Finding::warning(Code::MirrorFailed, what)
            .seen(&one.why)
            .advise("make the file writable; the next command writes it")
    });
    Ok(failed.collect())
}

/// Mirrors that show sessions that are over.
pub fn mirrors_of_the_dead(patient: &mut Patient) -> Found {
    let left = mirror::left::find(patient.store()?)?;
    if left.is_empty() {
        return Ok(Vec::new());
    }
    let what = format!(
        "sessions that are over are still shown by {}",
        several(left.len(), "mirror")
    );
    let mut finding = Finding::warning(Code::MirrorLeft, what);
    for one in left.iter().take(NAMED) {
        finding = finding.seen(format!("{} shows {}", one.path.display(), one.handle));
    }
    Ok(vec![finding.repaired_by(Repair::SettleMirrors(left))])
}
