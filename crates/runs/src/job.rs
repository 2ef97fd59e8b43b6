//! A runner that takes a job from the queue.
//!
//! The dispatcher starts it with only the job's id. The runner takes the job itself, so the queue
//! checks the process that does the work, and whatever happens to the dispatcher meanwhile changes
//! nothing. Taking freezes the job's events; the prompt is rendered after that. A runner that
//! cannot start its agent returns the job with the reason.
//!
//! *Crash* before the agent is let go: the next sweep finds the taker dead and returns the job.
//! Later: the job ends with its run.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tenure_core::forge::{ForgeEvent, Thread};
use tenure_core::id::{JobId, RunId};
use tenure_core::ignore::Ignore;
use tenure_core::key::Key;
use tenure_core::process::Process;
use tenure_core::queue::choose::Limits;
use tenure_core::queue::step::Retry;
use tenure_core::queue::{JobAsk, JobEvent, ParkedFor};
use tenure_core::run::going_on::{self, Send};
use tenure_core::run::{Outcome, Run, Trigger, prompt};
use tenure_core::skill::SkillName;
use tenure_core::text;
use tenure_core::time::Timestamp;
use tenure_forges::api::Connect;

use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::{GiveBack, PlanRequest, TakeJob, TakenJob};

use super::begin::Begun;
use super::code::{self, Brought};
use super::compose::{Composed, Prompt, RunRequest, compose};
use super::driver::Driver;
use super::files::RunFiles;
use super::job_order::JobOrder;
use super::order::{OrderPlace, RunOrder};
use super::permission::NOT_PERMITTED;
use super::runner::{Runner, own_process};
use super::template::Variables;
use super::wrap;
use crate::wraps;
use tenure_app::conversation;
use tenure_app::open::{self, Context, Purpose};
use tenure_app::unfinished::Unfinished;

/// Takes the job that these files name, and starts its agent.
pub(super) fn begin(
    files: &RunFiles,
    connect: Option<Connect>,
    window: &mut io::Stdout,
) -> Result<(Runner, Begun), Unfinished> {
    let unreadable = |error: io::Error| cannot("read the run's instructions", &error);
    let wanted = JobOrder::read(files).map_err(unreadable)?;
    let mut context = open::open(Purpose::Write)?;
    let own = own_process(&context)?;
    let request = TakeJob {
        job: JobId::parse(&wanted.job).map_err(Problem::from)?,
        runner: own.clone(),
        limits: Limits {
            concurrency: wanted.concurrency,
        },
    };
    let taken = context.service().take_job(&request)?.value;
    if let Err(problem) = wraps::passes(&context, &taken.job) {
        give_back(&taken, own, &problem);
        return Err(problem.into());
    }
    let brought = bring(&mut context, connect, &wanted.run, &taken);
    let thread = code::thread(connect, &taken.job);
    let start = |brought| start(files, &wanted, context, (&taken, brought, thread), window);
    match brought.and_then(start) {
        Ok(started) => Ok(started),
        Err(refused) => {
            give_back(&taken, own, &refused.problem);
            Err(refused)
        }
    }
}

/// Gets the code that a dispatched job works on.
fn bring(
    context: &mut Context,
    connect: Option<Connect>,
    run: &str,
    taken: &TakenJob,
) -> Result<Option<Brought>, Unfinished> {
    if !taken.job.spec.dispatched {
        return Ok(None);
    }
    let run = RunId::parse(run).map_err(Problem::from)?;
    Ok(Some(code::bring(context, connect, &run, &taken.job)?))
}

/// An error before the agent of a job runs.
fn cannot(what: &str, error: &io::Error) -> Problem {
    let message = format!("cannot {what}: {error}");
    let hint = Hint::step("fix the cause; tenure then tries the job again");
    Problem::new(Class::Internal, "internal", message, hint)
}

fn start(
    files: &RunFiles,
    wanted: &JobOrder,
    mut context: Context,
    (taken, brought, thread): (&TakenJob, Option<Brought>, Option<Thread>),
    window: &mut io::Stdout,
) -> Result<(Runner, Begun), Unfinished> {
    let order = order(&mut context, &wanted.run, (taken, thread), brought)?;
    let unwritten = |error: io::Error| cannot("store the run's instructions", &error);
    order.write(files).map_err(unwritten)?;
    let mut runner = Runner::with(files, order, context)?;
    let begun = runner.begin(window)?;
    Ok((runner, begun))
}

/// Returns a job whose agent was not started. If the store does not answer, the next sweep returns
/// it.
fn give_back(taken: &TakenJob, runner: Process, problem: &Problem) {
    let request = GiveBack {
        of: taken.of.clone(),
        runner,
        why: problem.message.clone(),
        retry: retry(problem),
    };
    let Ok(mut context) = open::open(Purpose::Write) else {
        return;
    };
    context
        .service()
        .give_back_job(&request)
        .ignore("its run recorded that it never began, or the next sweep finds this process gone");
}

/// Whether another attempt can have a different result.
fn retry(problem: &Problem) -> Retry {
    let until = || -> Option<Timestamp> {
        let until = problem.data.get("until")?;
        serde_json::from_value(until.clone()).ok()
    };
    match problem.kind.as_str() {
        "held" | "survivors" | "survivors_unknown" | "cannot_tell" | "timed_out" => Retry::InUse,
        "parked" => match until() {
            Some(until) => Retry::At(ParkedFor::Limit, until),
            None => Retry::Later,
        },
        "over_budget" => match until() {
            Some(until) => Retry::At(ParkedFor::Budget, until),
            None => Retry::Later,
        },
        NOT_PERMITTED => Retry::Cancel,
        "forge_away" | code::REMOTE_AWAY => Retry::Away,
        _ if matches!(problem.class, Class::Store | Class::Internal) => Retry::Away,
        "unusable" | "elsewhere" | "unknown_conversation" => Retry::Never(ParkedFor::Unusable),
        _ => Retry::Later,
    }
}

/// The order for a job that was taken.
fn order(
    context: &mut Context,
    run: &str,
    (taken, thread): (&TakenJob, Option<Thread>),
    brought: Option<Brought>,
) -> Result<RunOrder, Problem> {
    let (job, spec) = (&taken.job, &taken.job.spec);
    let ask = match &spec.ask {
        JobAsk::Text(text) => Prompt::Text(text.clone()),
        JobAsk::Skill { name, variables } => {
            let mut all = variables.clone();
            if taken.job.rule.is_some() {
                all.extend(of_events(&taken.job.item, &taken.events, thread.as_ref()));
                all.insert("last".to_owned(), how_it_ended(taken));
            }
            Prompt::Skill(SkillName::parse(name)?, all)
        }
    };
    // A conversation of the queue is resumed in its own directory if there is no worktree, or if the
    // worktree is another item's. A person's may be in any directory.
    let is_queues = |run: &Run| !spec.dispatched || run.trigger == Trigger::Queue;
    let is_there = brought.is_none()
        && taken.last.as_ref().is_some_and(is_queues)
        && (!spec.workdir.worktree || job.item != job.root);
    let is_elsewhere = match &brought {
        Some(brought) => is_elsewhere(context, taken, brought)?,
        None => false,
    };
    let dir = brought.as_ref().map(|brought| brought.dir.clone());
    let run_request = RunRequest {
        base: None,
        agent: job.agent.clone(),
        role: job.role.clone(),
        item: job.item.clone(),
        ask,
        dir: dir.or_else(|| Some(PathBuf::from(&spec.workdir.dir))),
        worktree: spec.workdir.worktree && !is_there,
        fresh: spec.fresh || is_elsewhere,
        exclusive: spec.exclusive,
        shares_dir: spec.shares_dir,
        leave: false,
        budget: budget(context, taken)?,
        timeout: spec.timeout_ms.map(Duration::from_millis),
        wait: Duration::ZERO,
        arguments: spec.args.clone(),
        trusted: spec.dispatched.then_some(spec.trusted_repo),
        skills: brought.as_ref().map(|brought| brought.base.clone()),
    };
    let Composed { mut order, .. } = compose(context, &run_request)?;
    order.run = run.to_owned();
    order.trigger = Trigger::Queue.as_str().to_owned();
    order.job = Some((taken.of.id.to_string(), taken.of.attempt));
    if is_there {
        order.dir = None;
        order.here.clone_from(&spec.workdir.dir);
    }
    if spec.dispatched {
        order.dispatched = true;
        order.env.clone_from(&spec.env);
        order.wrap.clone_from(&spec.wrap);
        order.model.clone_from(&spec.code.model);
    }
    go_on(&mut order, taken);
    if let Some(brought) = brought {
        order.place = Some(OrderPlace {
            name: brought.name,
            repo: job.repo.clone().unwrap_or_default(),
            code: spec.code.clone(),
        });
        let elsewhere = is_elsewhere.then(|| ELSEWHERE.to_owned());
        let notes: Vec<String> = brought.note.into_iter().chain(elsewhere).collect();
        for note in &notes {
            for prompt in [&mut order.prompts.fresh, &mut order.prompts.resume] {
                prompt.push_str("\n\n");
                prompt.push_str(note);
            }
        }
        order.note = (!notes.is_empty()).then(|| notes.join("\n\n"));
    }
    Ok(order)
}

/// Said where a conversation is not continued.
const ELSEWHERE: &str =
    "The conversation so far belongs to another working copy, so this one began anew.";

/// Whether the conversation is in another place of the dispatcher, such as one of another trust: what happened there must
/// not reach this run. Under a wrap nobody else's can be continued either. Without one the run itself moves a person's, or
/// begins anew.
fn is_elsewhere(
    context: &mut Context,
    taken: &TakenJob,
    brought: &Brought,
) -> Result<bool, Problem> {
    let job = &taken.job;
    let is_wrapped = !job.spec.wrap.is_empty();
    let mut here = conversation::here(context, &job.agent, &job.item);
    if is_wrapped {
        let inside = wrap::home(&brought.dir);
        wrap::USER.clone_into(&mut here.user);
        here.agent_home = Some(inside.to_string_lossy().into_owned());
    }
    let request = PlanRequest {
        agent: job.agent.clone(),
        role: job.role.clone(),
        item: job.item.clone(),
        here,
        fresh: false,
    };
    let planned = match context.service().plan_run(&request).map_err(Problem::from) {
        Ok(planned) => planned.value,
        Err(problem) if problem.kind == "elsewhere" => return Ok(is_wrapped),
        Err(problem) => return Err(problem),
    };
    let Some(dir) = planned.current.map(|current| current.home.dir) else {
        return Ok(false);
    };
    let dir = Path::new(&dir);
    let theirs = job.spec.code.places.as_ref().map(Path::new);
    let mut places = brought.dir.parent().into_iter().chain(theirs);
    let is_place = places.any(|places| dir.starts_with(places));
    Ok(dir != brought.dir && (is_wrapped || is_place))
}

/// What the run may cost: what is left of the item's day, for agents that take a limit.
fn budget(context: &Context, taken: &TakenJob) -> Result<Option<f64>, Problem> {
    let driver = Driver::of(&context.settings, &taken.job.agent)?;
    let left = taken
        .budget_left
        .filter(|_| driver.runs().spec().takes_budget);
    Ok(left.map(|left| {
        context
            .settings
            .budgets
            .run
            .map_or(left, |most| most.min(left))
    }))
}

/// Adds to the prompt what the agent should know about the previous run.
fn go_on(order: &mut RunOrder, taken: &TakenJob) {
    let cut_off = |run: &&Run| {
        let outcome = run.end.as_ref().map(|end| end.outcome);
        matches!(outcome, Some(Outcome::Parked | Outcome::Interrupted))
    };
    if let Some(before) = taken.goes_on.as_ref().filter(cut_off)
        && let Some(end) = &before.end
    {
        order.goes_on = Some(before.id.to_string());
        if going_on::what_to_send(before.begun_at.is_some(), true) == Send::Continue {
            let mut text = going_on::continue_text(end.outcome, end.at);
            let new: Vec<JobEvent> = taken
                .events
                .iter()
                .filter(|event| event.at > before.created_at)
                .cloned()
                .collect();
            if !new.is_empty() {
                text.push_str("\n\nMeanwhile:\n");
                text.push_str(&told(&new));
            }
            order.prompts.resume = prompt::compose(&taken.job.item, &text);
        }
        return;
    }
    let failed = |run: &&Run| {
        let outcome = run.end.as_ref().map(|end| end.outcome);
        outcome.is_some_and(|outcome| outcome.is_failure() || outcome == Outcome::Stopped)
    };
    if let Some(last) = taken.last.as_ref().filter(failed)
        && let Some(end) = &last.end
    {
        let why = going_on::why(end.outcome);
        let note = format!(
            "Your last turn here did not finish ({why}, {}). Check what is already done first.",
            end.at
        );
        order.prompts.resume.push_str("\n\n");
        order.prompts.resume.push_str(&note);
    }
}

fn of_events(item: &Key, events: &[JobEvent], thread: Option<&Thread>) -> Variables {
    let read = |event: &JobEvent| serde_json::from_str::<ForgeEvent>(&event.data).ok();
    let events: Vec<ForgeEvent> = events.iter().filter_map(read).collect();
    crate::variables(item, &events, thread)
}

/// How the previous run ended, for a template.
fn how_it_ended(taken: &TakenJob) -> String {
    let end = taken.last.as_ref().and_then(|run| run.end.as_ref());
    end.map_or_else(String::new, |end| {
        format!("{} ({})", going_on::why(end.outcome), end.at)
    })
}

/// Events for a model: what happened, then what was written.
fn told(events: &[JobEvent]) -> String {
    let mut all = String::new();
    for event in events {
        let data: Value = serde_json::from_str(&event.data).unwrap_or(Value::Null);
        let summary = prompt::without_mentions(&text::line(&event.summary));
        all.push_str(&format!("- {summary}, {}\n", event.at));
        let texts = ["title", "body"]
            .iter()
            .filter_map(|name| data[*name].as_str());
        for text in texts.filter(|text| !text.trim().is_empty()) {
            all.push_str(&prompt::fenced(text));
        }
    }
    all
}
