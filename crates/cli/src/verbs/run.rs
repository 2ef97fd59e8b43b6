use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenure_app::dispatchers;
use tenure_app::open::Context;
use tenure_app::place::{current_dir, place};
use tenure_app::settings::amount;
use tenure_core::id::{AgentName, JobId, WorkerRole};
use tenure_core::key::Key;
use tenure_core::queue::code::JobCode;
use tenure_core::queue::{Caps, JobAsk, JobSpec, JobWorkdir, Trust};
use tenure_core::skill::SkillName;
use tenure_core::time::Span;
use tenure_runs::compose::{Prompt, RunRequest, compose};
use tenure_runs::skill::variables;
use tenure_runs::stop;
use tenure_runs::worktree::Base;
use tenure_service::answer::{Class, Hint};
use tenure_service::{NewJob, Queued};

use crate::app::App;
use crate::exit::Exit;
use crate::lines::Lines;
use crate::output::{CliError, Outcome, Output};
use crate::run_window;

/// Run an agent on an item, unattended, in the item's conversation
///
/// The first run of an agent on an item starts a conversation, and each further run continues it. Only one run at
/// a time uses a conversation or a directory. The run continues if this command is killed or its
/// terminal is closed; Ctrl-C stops it. Prints the agent's answer. Exit 0 only if the agent reported success, otherwise the
/// agent's own code or 1; 125 if the run was refused.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure run claude '#42' --prompt 'Fix the failing login test'
  tenure run codex issue:acme/web#42 --skill implement --var title='Login fails'
  tenure run claude '#42' --skill implement --worktree --exclusive --timeout 45m
  tenure run claude wp:WP02 --skill implement --base wp:WP01
  tenure run claude '#42' --prompt-file task.md --json | jq -r .event
  tenure run claude '#42' --prompt 'And the docs?' -- --model opus
  tenure run claude '#42' --role reviewer --skill review
  tenure run claude '#42' --skill triage --queue

Run `tenure runs` to list runs, `tenure runs stop RUN` to stop one.")]
#[command(group(clap::ArgGroup::new("ask").required(true).args(["prompt", "prompt_file", "skill"])))]
pub struct Args {
    #[arg(value_name = "AGENT", help = format!("Agent: {}, or one from the settings", known_agents()))]
    agent: String,

    /// Item, such as issue:acme/web#42 or #42
    #[arg(value_name = "ITEM")]
    item: String,

    /// Role of the agent; each role has a conversation of its own [default: none]
    #[arg(
        long,
        value_name = "ROLE",
        default_value = "",
        hide_default_value = true
    )]
    role: WorkerRole,

    /// Prompt
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["prompt_file", "skill"])]
    prompt: Option<String>,

    /// File with the prompt; - reads it from stdin
    #[arg(long, value_name = "FILE", conflicts_with = "skill")]
    prompt_file: Option<PathBuf>,

    /// Skill that renders the prompt
    #[arg(long, value_name = "NAME")]
    skill: Option<SkillName>,

    /// Set a variable of the skill
    #[arg(long = "var", value_name = "K=V", requires = "skill")]
    variables: Vec<String>,

    /// Start a new conversation; the previous one moves to the history
    #[arg(long)]
    fresh: bool,

    /// Claim the item while the run lasts
    #[arg(long)]
    exclusive: bool,

    /// Working directory [default: the conversation's, else the current one]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Work in a git worktree of the item
    #[arg(long)]
    worktree: bool,

    /// Start the worktree from the branch of this item's newest run (implies --worktree)
    #[arg(long, value_name = "ITEM", conflicts_with = "queue")]
    base: Option<String>,

    /// Work in the directory even if another run uses it
    #[arg(long)]
    share_dir: bool,

    /// Leave running what the agent started, such as a server; otherwise it ends with the run
    #[arg(long, conflicts_with = "queue")]
    leave: bool,

    /// Stop the run after this long
    #[arg(long, value_name = "TIME")]
    timeout: Option<Span>,

    /// Let the agent spend at most this many US dollars; claude and opencode only [default: the setting budget.run]
    #[arg(long, value_name = "USD", value_parser = budget)]
    budget: Option<f64>,

    /// Wait at most this long while the conversation, the directory or the item is in use
    #[arg(long, value_name = "TIME")]
    wait: Option<Span>,

    /// Put it into the queue; `tenure dispatch` runs it
    #[arg(long, conflicts_with_all = ["wait", "conflict_exit"])]
    queue: bool,

    /// Exit code if something the run needs is in use, or the wait times out
    #[arg(long, value_name = "N", default_value_t = 125)]
    conflict_exit: u8,

    /// Arguments for the agent
    #[arg(last = true, value_name = "ARGS")]
    arguments: Vec<String>,
}

fn budget(text: &str) -> Result<f64, &'static str> {
    amount(text).ok_or("expected a number above 0")
}

/// No prompt is longer.
const MAX_LENGTH: u64 = 8 << 20;

fn known_agents() -> String {
    tenure_agents::names(|row| row.runs.is_some()).join(", ")
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let conflict = Exit(args.conflict_exit);
    let done = start(args, app);
    done.map_err(|error| run_window::refused(error, conflict))
}

fn start(args: &Args, app: &App) -> Outcome {
    if args.queue {
        return enqueue(args, app);
    }
    let (agent, item, ask) = (
        AgentName::parse(&args.agent)?,
        app.key(&args.item)?,
        ask(args)?,
    );
    let base = args.base.as_deref().map(|base| app.key(base)).transpose()?;
    let mut context = app.open()?;
    let base = base.map(|item| base_of(&mut context, item)).transpose()?;
    let request = RunRequest {
        agent,
        role: args.role.clone(),
        item,
        ask,
        dir: args.dir.clone(),
        worktree: args.worktree || base.is_some(),
        base,
        fresh: args.fresh,
        exclusive: args.exclusive,
        shares_dir: args.share_dir,
        leave: args.leave,
        timeout: args.timeout.map(|Span(length)| length),
        budget: args.budget,
        wait: args.wait.map_or(Duration::ZERO, |Span(length)| length),
        arguments: args.arguments.clone(),
        trusted: None,
        skills: None,
    };
    let composed = compose(&mut context, &request)?;
    run_window::run(&mut context, &composed, app)
}

/// Where the newest run of an item worked.
fn base_of(context: &mut Context, item: Key) -> Result<Base, CliError> {
    let dir = context.service().newest_run_dir(&item)?.value;
    Ok(Base {
        item,
        dir: dir.into(),
    })
}

/// Queues the run for a dispatcher.
fn enqueue(args: &Args, app: &App) -> Outcome {
    let ask = match ask(args)? {
        Prompt::Text(text) => JobAsk::Text(text),
        Prompt::Skill(name, variables) => JobAsk::Skill {
            name: name.to_string(),
            variables,
        },
    };
    let dir = match &args.dir {
        Some(dir) => place(dir)?.dir,
        None => place(&current_dir()?)?.dir,
    };
    let agent = AgentName::parse(&args.agent)?;
    let item = app.key(&args.item)?;
    let mut context = app.open()?;
    let new = NewJob {
        id: JobId::mint(context.random()),
        summary: format!("run of {agent}"),
        agent,
        role: args.role.clone(),
        item,
        rule: None,
        trust: Trust::Trusted,
        repo: context.repo().map(str::to_owned),
        spec: JobSpec {
            ask,
            workdir: JobWorkdir {
                dir,
                worktree: args.worktree,
            },
            args: args.arguments.clone(),
            env: Vec::new(),
            wrap: Vec::new(),
            exclusive: args.exclusive,
            fresh: args.fresh,
            shares_dir: args.share_dir,
            timeout_ms: args
                .timeout
                .map(|Span(length)| u64::try_from(length.as_millis()).unwrap_or(u64::MAX)),
            caps: Caps::default(),
            dispatched: false,
            trusted_repo: false,
            code: JobCode::default(),
        },
        data: "{}".to_owned(),
        reply: None,
    };
    stop::end_overdue(&mut context)?;
    let answer = context.service().enqueue(&new)?;
    let Queued { job, joined } = &answer.value;
    let line = if *joined {
        format!(
            "{}  the same run of {} on {} is queued already",
            job.id,
            job.worker(),
            job.item
        )
    } else {
        format!("{}  {} on {} is queued", job.id, job.worker(), job.item)
    };
    let mut text = Lines::from(line);
    let dispatchers = dispatchers::find(&context);
    if dispatchers.is_empty() {
        text.line(
            "no dispatcher is running on this machine; run `tenure dispatch` to start the jobs of the queue",
        );
    }
    Ok(Output::new("job", job, text)
        .with("already_queued", joined)
        .with("dispatcher", &!dispatchers.is_empty())
        .told(&answer))
}

fn ask(args: &Args) -> Result<Prompt, CliError> {
    if let Some(name) = &args.skill {
        return Ok(Prompt::Skill(name.clone(), variables(&args.variables)?));
    }
    if let Some(text) = &args.prompt {
        return Ok(Prompt::Text(text.clone()));
    }
    // One of the three was given.
    let file = args.prompt_file.as_deref().unwrap_or(Path::new("-"));
    let text = if file.as_os_str() == "-" {
        let mut text = String::new();
        let read = std::io::stdin().take(MAX_LENGTH).read_to_string(&mut text);
        read.map(|_| text)
    } else {
        tenure_host::read::text(file, MAX_LENGTH)
    };
    text.map(Prompt::Text).map_err(|error| {
        let message = format!("cannot read the prompt: {error}");
        let hint = Hint::step("pass a file of UTF-8 text");
        CliError::new(Class::Usage, "usage", message, hint)
    })
}
