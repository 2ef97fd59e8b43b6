//! A fleet for tests: sessions with what a test says about them, and nothing else.

use tenure_core::time::Timestamp;
use tenure_service::view::{ClaimView, CutOffView, HeldView, ProcessView, SessionView, WaitView};

use super::source::Fleet;

/// When the tests take place.
pub const NOW: Timestamp = Timestamp(10_000_000_000);

fn before(minutes: i64) -> Timestamp {
    Timestamp(NOW.0 - minutes * 60_000)
}

pub fn session(handle: &str, activity: &'static str) -> SessionView {
    SessionView {
        id: format!("id-{handle}"),
        handle: handle.to_owned(),
        agent: handle.split('-').next().unwrap_or_default().to_owned(),
        native_id: None,
        native_ids: None,
        hosted: false,
        state: "live",
        why: String::new(),
        activity: Some(activity),
        activity_since: Some(before(3)),
        activity_why: None,
        activity_until: None,
        activity_by: None,
        asks: None,
        finished: false,
        rank: None,
        collides_with: None,
        lost: None,
        twin_of: None,
        twins: None,
        parent: None,
        title: Some(format!("What {handle} was asked to do")),
        title_by: None,
        host: None,
        dir: "/srv/web".to_owned(),
        repo: Some("acme/web".to_owned()),
        branch: Some("main".to_owned()),
        branch_at: None,
        place: None,
        process: ProcessView {
            host_id: None,
            boot_id: None,
            pid_ns: None,
            pid: Some(1),
            start_ticks: None,
            life: 1,
            verified: true,
        },
        daemon: None,
        registered: None,
        started_at: before(120),
        last_seen_at: before(1),
        lease_until: None,
        ended_at: None,
        end_reason: None,
        end_kind: None,
        resume: None,
        survivors: None,
        survivors_unsure: None,
        last_words: None,
        claims: None,
        waits_for: None,
        wrote: None,
    }
}

fn claim(key: &str, holder: &SessionView, minutes: i64) -> ClaimView {
    ClaimView {
        key: key.to_owned(),
        epoch: 1,
        holder: Some(Box::new(holder.clone())),
        state: "held",
        acquired_at: Some(before(minutes)),
        freed_by: None,
        lease_until: None,
        note: None,
        already_held: None,
        taken_from: None,
        may_write_until: None,
        via: None,
        age: None,
    }
}

/// Ten sessions: one waits, one died, two write the same files, one waits for what another holds.
pub fn ten() -> Fleet {
    let held = |key: &str| HeldView {
        key: key.to_owned(),
        epoch: 1,
    };
    let mut asks = session("claude-k7qd", "waiting");
    asks.asks = Some("permission for `rm -rf build`".to_owned());
    let mut dead = session("codex-m3xa", "busy");
    (dead.state, dead.ended_at, dead.end_kind) = ("dead", Some(before(4)), Some("cut_off"));
    dead.resume = Some(CutOffView {
        command: Some("tenure resume codex-m3xa".to_owned()),
        problem: None,
        held: vec![held("issue:acme/web#7")],
    });
    let (mut one, mut other) = (session("gemini-p4wz", "busy"), session("qwen-x2mn", "busy"));
    one.collides_with = Some(vec![other.handle.clone()]);
    other.collides_with = Some(vec![one.handle.clone()]);
    let mut holder = session("claude-rf7b", "busy");
    holder.claims = Some(vec![held("issue:acme/web#42")]);
    let mut waiter = session("opencode-h8aa", "busy");
    waiter.waits_for = Some(vec![WaitView {
        key: "issue:acme/web#42".to_owned(),
        session: Some(waiter.handle.clone()),
        pid: 1,
        since: before(2),
    }]);
    let idle = ["claude-aaaa", "claude-bbbb", "codex-cccc", "codex-dddd"];
    let claims = vec![
        claim("path:acme/web:docs/**", &one, 6),
        claim("issue:acme/web#42", &holder, 12),
    ];
    let mut sessions = vec![asks, dead, one, other, holder, waiter];
    sessions.extend(idle.map(|handle| session(handle, "idle")));
    Fleet {
        sessions,
        more: 0,
        unmanaged: Vec::new(),
        claims,
    }
}
