//! Replies: what is written in forges about jobs, and which process writes it.

use tenure_core::forge::ForgeEvent;
use tenure_core::key::Key;
use tenure_core::process::Process;
use tenure_core::queue::breaker::Breaker;
use tenure_core::queue::duty::{Duty, RENEWED_EVERY};
use tenure_core::queue::reply::{ForgeReply, ReplyKind, back_off};
use tenure_core::queue::{Job, ParkedFor};
use tenure_core::store::{ConversationFilter, JobFilter, Lock, TxMode};
use tenure_core::time::Timestamp;

use crate::context::{Ctx, Stop};
use crate::transact::{Reply, Service};
use crate::unseen::Unseen;

/// How many replies are read in one go.
const PAGE: usize = 200;

/// A reply that may have to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct DueReply {
    pub reply: ForgeReply,
    pub job: Job,
    /// What the forge calls its item, as the newest event told; for the title of a pull request.
    pub title: String,
    /// What became of the job's pull requests; for its comment.
    pub pulls: Vec<ForgeReply>,
}

/// How an attempt to write a reply ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyAttempt {
    /// The forge accepted it.
    Said {
        comment: Option<u64>,
        label: Option<String>,
        is_last: bool,
    },
    /// The forge did not accept it yet. Try later, not before this time if the forge named one.
    Later {
        why: String,
        not_before: Option<Timestamp>,
    },
    /// The forge will not accept it.
    Never(String),
}

impl Service<'_> {
    /// Replies that may have to be written in a forge now, with their jobs.
    pub fn due_replies(&mut self, forge: &str) -> Reply<Vec<DueReply>> {
        self.transact(TxMode::Read, |ctx| {
            let mut due = Vec::new();
            let mut after = 0;
            // All of them: what has nothing to say yet must not hide what comes later.
            loop {
                let page = ctx.tx.open_replies(forge, after, PAGE)?;
                let is_last = page.len() < PAGE;
                for reply in page {
                    after = reply.id;
                    let waits = reply.next_at.is_some_and(|at| at > ctx.now.wall);
                    if !waits && let Some(job) = ctx.tx.job(&reply.job)? {
                        due.push(due_reply(ctx, reply, job)?);
                    }
                }
                if is_last {
                    return Ok(due);
                }
            }
        })
    }

    /// Records that a comment is about to be created. False if it is no longer wanted, because
    /// another comment already reported that the item waits for a person.
    pub fn intend_comment(&mut self, id: i64) -> Reply<bool> {
        self.transact(TxMode::Write, |ctx| intend(ctx, id))
    }

    /// Records how an attempt to write a reply ended.
    pub fn note_written(&mut self, id: i64, written: &ReplyAttempt) -> Reply<()> {
        self.transact(TxMode::Write, |ctx| note(ctx, id, written))
    }

    /// Takes a duty, or renews it; `None` while another process has it.
    pub fn take_duty(&mut self, name: &str, process: &Process) -> Reply<Option<Duty>> {
        self.transact(TxMode::Read, |ctx| take(ctx, name, process))
    }

    /// Records that a sweep completed.
    pub fn note_sweep(&mut self, name: &str, process: &Process, at: Timestamp) -> Reply<()> {
        self.transact(TxMode::Write, |ctx| {
            match ctx.tx.duty(name)? {
                Some(duty) if duty.holder.same_as(process) => {
                    let swept_at = Some(at);
                    let after = Duty {
                        swept_at,
                        ..duty.clone()
                    };
                    ctx.tx.set_duty(Some(&duty), &after)?;
                }
                _ => {}
            }
            Ok(())
        })
    }

    /// The items with an open conversation or an open job, and `more`, without those known to be
    /// closed.
    pub fn open_items(&mut self, more: &[Key]) -> Reply<Vec<Key>> {
        self.transact(TxMode::Read, |ctx| open_items(ctx, more))
    }
}

fn due_reply(ctx: &mut Ctx<'_>, reply: ForgeReply, job: Job) -> Result<DueReply, Stop> {
    let mut due = DueReply {
        title: String::new(),
        pulls: Vec::new(),
        reply,
        job,
    };
    match due.reply.kind {
        ReplyKind::Pull if !due.job.is_open() => {
            for event in ctx.tx.job_events(&due.job.id)? {
                let event: Option<ForgeEvent> = serde_json::from_str(&event.data).ok();
                let event = event.filter(|event| event.item.as_ref() == Some(&due.job.item));
                let title = event.map(|event| event.title);
                due.title = title.filter(|title| !title.is_empty()).unwrap_or(due.title);
            }
        }
        ReplyKind::Status if !due.job.is_open() => {
            for kind in [ReplyKind::Pull, ReplyKind::Merge] {
                due.pulls.extend(ctx.tx.reply_about(&due.job.id, kind)?);
            }
        }
        _ => {}
    }
    Ok(due)
}

fn intend(ctx: &mut Ctx<'_>, id: i64) -> Result<bool, Stop> {
    let Some(reply) = ctx.tx.reply(id)? else {
        return Ok(false);
    };
    let Some(job) = ctx.tx.job(&reply.job)? else {
        return Ok(false);
    };
    let is_told = reply.kind != ReplyKind::Reset && tell_breaker(ctx, &job)?;
    if is_told && reply.kind == ReplyKind::Parked && !reply.unsure {
        return Ok(false);
    }
    ctx.tx.update_reply(&ForgeReply {
        unsure: true,
        ..reply
    })?;
    Ok(true)
}

/// Records that people are being told that an item waits for a person. Returns whether they were
/// told before.
fn tell_breaker(ctx: &mut Ctx<'_>, job: &Job) -> Result<bool, Stop> {
    let parked = job.parked.as_ref();
    if !parked.is_some_and(|parked| parked.reason == ParkedFor::Breaker) {
        return Ok(false);
    }
    ctx.lock([Lock::Conversation(job.item.clone())])?;
    let breaker = ctx.tx.breaker(&job.item)?;
    let breaker = breaker.unwrap_or_else(|| Breaker::of(job.item.clone()));
    if breaker.told_at.is_some() {
        return Ok(true);
    }
    let told_at = Some(ctx.now.wall);
    ctx.tx.set_breaker(&Breaker { told_at, ..breaker })?;
    Ok(false)
}

fn note(ctx: &mut Ctx<'_>, id: i64, written: &ReplyAttempt) -> Result<(), Stop> {
    let Some(reply) = ctx.tx.reply(id)? else {
        return Ok(());
    };
    let now = ctx.now.wall;
    let tells = matches!(written, ReplyAttempt::Said { .. }) && reply.kind != ReplyKind::Reset;
    if let (true, Some(job)) = (tells, ctx.tx.job(&reply.job)?) {
        tell_breaker(ctx, &job)?;
    }
    let after = match written {
        ReplyAttempt::Said {
            comment,
            label,
            is_last,
        } => ForgeReply {
            comment: comment.or(reply.comment),
            unsure: false,
            said: label.clone().or(reply.said),
            tries: 0,
            next_at: None,
            failure: None,
            done_at: is_last.then_some(now),
            ..reply
        },
        ReplyAttempt::Later { why, not_before } => {
            let tries = reply.tries.saturating_add(1);
            let next = now.plus(back_off(tries).min(ctx.policy.retry_every));
            ForgeReply {
                tries,
                next_at: Some(not_before.map_or(next, |at| at.max(next))),
                failure: Some(why.clone()),
                ..reply
            }
        }
        ReplyAttempt::Never(why) => ForgeReply {
            failure: Some(why.clone()),
            done_at: Some(now),
            ..reply
        },
    };
    Ok(ctx.tx.update_reply(&after)?)
}

fn take(ctx: &mut Ctx<'_>, name: &str, process: &Process) -> Result<Option<Duty>, Stop> {
    let now = ctx.now.wall;
    let before = ctx.tx.duty(name)?;
    let swept_at = before.as_ref().and_then(|duty| duty.swept_at);
    if let Some(duty) = &before {
        let is_ours = duty.holder.same_as(process);
        if is_ours && duty.renewed_at.age_at(now) < RENEWED_EVERY {
            return Ok(before);
        }
        if !is_ours {
            let mut unseen = Unseen::default();
            let seen = ctx.process_liveness(&duty.holder);
            let seen = unseen.gather(seen)?;
            unseen.look()?;
            if !seen.is_some_and(|seen| duty.is_free(&seen, now)) {
                return Ok(None);
            }
        }
    }
    ctx.write()?;
    let duty = Duty {
        name: name.to_owned(),
        holder: process.clone(),
        renewed_at: now,
        swept_at,
    };
    ctx.tx.set_duty(before.as_ref(), &duty)?;
    Ok(Some(duty))
}

fn open_items(ctx: &mut Ctx<'_>, more: &[Key]) -> Result<Vec<Key>, Stop> {
    let mut items = more.to_vec();
    let filter = ConversationFilter {
        readable_only: true,
        ..ConversationFilter::default()
    };
    let mut reopened = Vec::new();
    for conversation in ctx.tx.list_conversations(&filter)? {
        if conversation.open().is_some() {
            reopened.push(conversation.item.clone());
        }
        let linked = ctx.tx.items_linked_to(&conversation.item)?;
        items.extend(linked.into_iter().map(|state| state.item));
        items.push(conversation.item);
    }
    let filter = JobFilter {
        open: true,
        readable_only: true,
        ..JobFilter::default()
    };
    let jobs = ctx.tx.list_jobs(&filter)?;
    // A job for a closed item was asked for after the close.
    reopened.retain(|item| !jobs.iter().any(|job| job.root == *item));
    items.extend(jobs.into_iter().map(|job| job.item));
    items.sort();
    items.dedup();
    let mut open = Vec::new();
    for item in items {
        let state = ctx.tx.item_state(&item)?;
        // After the close a comment may have started a run, which left its conversation open.
        if state.is_none_or(|state| state.closed_at.is_none()) || reopened.contains(&item) {
            open.push(item);
        }
    }
    Ok(open)
}
