//! Holds for tests.

use tenure_core::time::Timestamp;
use tenure_service::view::{HoldView, NameView, TimelineView};

pub fn name(handle: &str) -> NameView {
    NameView {
        id: format!("id-{handle}"),
        handle: handle.into(),
    }
}

pub fn hold(ended_by: Option<&'static str>) -> HoldView {
    HoldView {
        key: "wp:1".into(),
        epoch: 3,
        session: name("ann-k7qd"),
        means: "claim",
        note: None,
        from: Timestamp(0),
        to: ended_by.map(|_| Timestamp(60_000)),
        ended_by,
        ended_why: None,
        passed_to: None,
        suspect_since: None,
        free_at: None,
    }
}

pub fn view(holds: Vec<HoldView>) -> TimelineView {
    TimelineView {
        now: Timestamp(90_000),
        since: None,
        holds,
        next: None,
    }
}
