//! Why a key is in its state, and what would change that.

use super::grant::shown;
use super::rivals::{Asker, Rivals, rivals};
use crate::caller::{self, Caller};
use crate::claim::view::{ClaimView, WhyView};
use crate::context::{Ctx, Stop};
use crate::error::{Error, take_over, wait_for};
use crate::session::view::SessionView;
use crate::transact::{Reply, Service};
use tenure_core::claim::{Ask, ClaimRecord, Verdict, decide};
use tenure_core::hint::Hint;
use tenure_core::id::SessionId;
use tenure_core::key::Key;
use tenure_core::session::{Session, Standing};
use tenure_core::store::Mode;
use tenure_core::time::Span;

/// A key with its explanation.
#[derive(Debug, Clone)]
pub struct Why {
    pub claim: ClaimView,
    pub why: WhyView,
}

impl Service<'_> {
    pub fn why(&mut self, key: &Key) -> Reply<Why> {
        self.transact(Mode::Read, |ctx| {
            let me = caller::anybody(ctx)?;
            why(ctx, me.as_ref(), key)
        })
    }
}

fn why(ctx: &mut Ctx<'_>, me: Option<&Caller>, key: &Key) -> Result<Why, Stop> {
    let key = &ctx.held_key(key, me.map(|caller| caller.session.id))?;
    let record = match ctx.tx.claim(key)? {
        Some(record) => record,
        None => ClaimRecord::unknown(key.clone()),
    };
    let holder = match record.current() {
        Some(hold) => {
            let session = ctx.session(hold.session)?;
            let session = ctx.record_death_if_proved(session)?;
            let standing = ctx.standing(&session)?;
            Some((session, standing))
        }
        None => None,
    };
    let claim = shown(ctx, &record)?;
    let explanation = explain(ctx, me, &record, holder.as_ref())?;
    Ok(Why {
        claim,
        why: explanation,
    })
}

fn explain(
    ctx: &mut Ctx<'_>,
    me: Option<&Caller>,
    record: &ClaimRecord,
    holder: Option<&(Session, Standing)>,
) -> Result<WhyView, Stop> {
    let key = &record.key;
    let ask = Ask {
        blind: me.is_some_and(|caller| caller.blind),
        ..Ask::default()
    };
    let nobody = SessionId::mint(0, [0; 10]);
    let asker = Asker {
        id: me.map_or(nobody, |caller| caller.session.id),
        blind: ask.blind,
    };
    let standing = holder.map(|(_, standing)| standing);
    let verdict = decide(record, asker.id, None, standing, &ask);
    let mut because = history(ctx, record)?;
    if let Some((session, _)) = holder {
        let view = ctx.view(session)?;
        because.push(holder_line(session, &view));
    }
    let typed = key.as_str();
    let (answer, mut hints) = match &verdict {
        Verdict::Grant(_) => match rivals(ctx, asker, key, None)? {
            Rivals::Gone(_) => (
                "granted".to_owned(),
                vec![Hint::run("claim", [typed], "to claim it")],
            ),
            Rivals::Living(rival) => {
                let view = ctx.view(&rival.session)?;
                because.push(format!(
                    "it overlaps {}, which {} holds",
                    rival.key, rival.session.handle
                ));
                because.push(holder_line(&rival.session, &view));
                (refused_by(&rival.error), rival.error.hints())
            }
        },
        Verdict::AlreadyHeld | Verdict::Retry | Verdict::HeldByYou => (
            "yours".to_owned(),
            vec![Hint::run("release", [typed], "to release it")],
        ),
        Verdict::Done => (
            "refused: done".to_owned(),
            vec![Hint::run("claim", [typed, "--reopen"], "to reopen it")],
        ),
        Verdict::Held(_) | Verdict::Lost => {
            let tell = |session: &Session| {
                let args = [session.handle.as_str(), "MESSAGE"];
                Hint::run("tell", args, "to ask its holder")
            };
            let mut hints = vec![wait_for(typed)];
            hints.extend(holder.map(|(session, _)| tell(session)));
            hints.push(take_over(typed));
            ("refused: held".to_owned(), hints)
        }
        Verdict::Suspect { left, .. } => (
            format!("refused: suspect, free in {}", Span(*left)),
            vec![wait_for(typed), take_over(typed)],
        ),
        Verdict::CannotTell(_) => ("refused: cannot tell".to_owned(), vec![take_over(typed)]),
    };
    let queue = ctx.tx.line(key)?;
    let waiters = ctx.show_waiters(queue)?;
    if me.is_none() {
        hints.insert(0, Hint::verb("register", "first: you are not in a session"));
    }
    Ok(WhyView {
        answer,
        because,
        hints: ctx.reader.hints(&hints),
        waiters,
    })
}

fn holder_line(session: &Session, view: &SessionView) -> String {
    format!("{} is {}: {}", session.handle, view.state, view.why)
}

/// Why a claim beside a rival would fail.
fn refused_by(error: &Error) -> String {
    if matches!(error, Error::CannotTell { .. }) {
        "refused: cannot tell".to_owned()
    } else {
        "refused: overlaps".to_owned()
    }
}

/// The history of a key, in one or two lines.
fn history(ctx: &mut Ctx<'_>, record: &ClaimRecord) -> Result<Vec<String>, Stop> {
    let Some(hold) = &record.newest else {
        return Ok(vec!["it has never been claimed".into()]);
    };
    let handle = ctx.session(hold.session)?.handle;
    let ago = |at: tenure_core::time::Timestamp| Span(at.age_at(ctx.now.wall)).to_string();
    let (means, epoch) = (hold.means.as_str(), hold.epoch);
    let mut lines = vec![format!(
        "granted to {handle} {} ago by {means} (epoch {epoch})",
        ago(hold.granted_at)
    )];
    if let Some(previous) = &hold.taken_from {
        lines.push(format!(
            "previously held by {} (epoch {}): {}",
            previous.handle, previous.epoch, previous.proof
        ));
    }
    if let Some(end) = hold.ended {
        lines.push(format!("ended {} ago by {}", ago(end.at), end.by.as_str()));
    }
    Ok(lines)
}
