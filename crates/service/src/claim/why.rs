//! Why a key is in its state, and what would change that.

use super::grant::shown;
use super::rivals::{Asker, Rivals, rivals};
use crate::answer::Reader;
use crate::caller::{self, Caller};
use crate::claim::view::{ClaimView, WhyView};
use crate::context::{Ctx, Stop};
use crate::error::{Error, take_over, wait_for};
use crate::session::view::SessionView;
use crate::transact::{Reply, Service};
use tenure_core::claim::{ClaimOptions, ClaimRecord, EndedBy, Means, Verdict, decide};
use tenure_core::hint::Hint;
use tenure_core::id::SessionId;
use tenure_core::key::Key;
use tenure_core::session::{Session, Standing};
use tenure_core::store::TxMode;
use tenure_core::time::Span;

/// A key with its explanation.
#[derive(Debug, Clone)]
pub struct Why {
    pub claim: ClaimView,
    pub why: WhyView,
}

impl Service<'_> {
    pub fn why(&mut self, key: &Key) -> Reply<Why> {
        self.transact(TxMode::Read, |ctx| {
            let me = caller::identify(ctx)?;
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
    let ask = ClaimOptions {
        blind: me.is_some_and(|caller| caller.blind),
        ..ClaimOptions::default()
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
    // A person's claim registers the shell.
    let registers = ctx.effects.reader == Reader::Newcomer && answer == "granted";
    if me.is_none() && !registers {
        hints.insert(0, Hint::verb("register", "first: you are not in a session"));
    }
    Ok(WhyView {
        answer,
        because,
        hints: ctx.effects.reader.hints(&hints),
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
    let (age, epoch) = (ago(hold.granted_at), hold.epoch);
    let means = match hold.means {
        Means::Claim => "claimed it",
        Means::Handoff => "was handed it",
        Means::Takeover => "took it over",
        Means::Resume => "got it back when it resumed",
        Means::Moved => "got it with its conversation",
    };
    let mut lines = vec![format!("{handle} {means} {age} ago (epoch {epoch})")];
    if let Some(previous) = &hold.taken_from {
        lines.push(format!(
            "previously held by {} (epoch {}): {}",
            previous.handle, previous.epoch, previous.proof
        ));
    }
    if let Some(end) = hold.ended {
        let age = ago(end.at);
        lines.push(match end.by {
            EndedBy::Release => format!("released {age} ago"),
            EndedBy::Done => format!("marked done {age} ago"),
            EndedBy::End => format!("freed {age} ago: its holder ended"),
            EndedBy::Death => format!("freed {age} ago: its holder died"),
            EndedBy::Lease => format!("freed {age} ago: its holder's lease expired"),
            EndedBy::Taken => format!("taken over {age} ago"),
            EndedBy::Handoff => format!("handed over {age} ago"),
        });
    }
    Ok(lines)
}
