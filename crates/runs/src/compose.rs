//! From a request to an order: prompts are rendered and directories found before anything is
//! started.

use std::path::PathBuf;
use std::time::Duration;

use tenure_core::id::{AgentName, RunId, WorkerRole};
use tenure_core::key::Key;
use tenure_core::run::going_on::{self, Send};
use tenure_core::run::{Outcome, Run, Trigger, prompt};
use tenure_core::skill::{SkillName, TurnKind};
use tenure_host::git::{self, Worktree};
use tenure_host::git_command::Belief;
use tenure_host::own_repository::OwnRepository;
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::{PlanRequest, RunError};

use super::driver::Driver;
use super::files::RunFiles;
use super::launch::new_id;
use super::order::{Prompts, RunOrder};
use super::skill::{Skill, Skills};
use super::template::Variables;
use super::worktree;
use tenure_app::conversation;
use tenure_app::location::locks;
use tenure_app::open::Context;
use tenure_app::place::{current_dir, place};
use tenure_app::settings::user_dir;

/// A requested run.
#[derive(Debug, Clone)]
pub struct RunRequest {
    pub agent: AgentName,
    pub role: WorkerRole,
    pub item: Key,
    pub ask: Prompt,
    pub dir: Option<PathBuf>,
    /// Whether it works in a worktree for its item.
    pub worktree: bool,
    /// What the worktree begins with; none for the base branch.
    pub base: Option<worktree::Base>,
    pub fresh: bool,
    pub exclusive: bool,
    pub shares_dir: bool,
    /// Whether what the agent leaves running goes on after the run.
    pub leave: bool,
    pub timeout: Option<Duration>,
    /// The most that it may cost, in US dollars.
    pub budget: Option<f64>,
    pub wait: Duration,
    pub arguments: Vec<String>,
    /// Whether the repository may instruct the agent; none leaves that to the user's settings.
    pub trusted: Option<bool>,
    /// Where its skills are, for a directory that is a place: that one is not read.
    pub skills: Option<OwnRepository>,
}

/// The source of the prompt.
#[derive(Debug, Clone)]
pub enum Prompt {
    Text(String),
    Skill(SkillName, Variables),
}

/// An order, and notes for the person.
#[derive(Debug)]
pub struct Composed {
    pub order: RunOrder,
    pub notes: Vec<String>,
}

/// Makes an order from a request.
pub fn compose(context: &mut Context, run_request: &RunRequest) -> Result<Composed, Problem> {
    let mut notes = Vec::new();
    let here = current_dir()?;
    let mut dir = run_request.dir.clone();
    // Before git runs: what it may do in the repository depends on it.
    let is_place = run_request.skills.is_some();
    let around = |dir: &std::path::Path| (!is_place).then(|| git::worktree(dir)).flatten();
    let from = around(dir.as_deref().unwrap_or(&here));
    let trusted = match run_request.trusted {
        Some(trusted) => trusted,
        None => context.trusts(from.as_ref())?,
    };
    if run_request.worktree {
        let from = from.ok_or_else(|| not_in_repository(dir.as_deref().unwrap_or(&here)))?;
        // A dispatched job has the directory that the dispatcher's settings name.
        let belief = Belief::of(trusted || run_request.trusted.is_some());
        let made = worktree::for_item(
            &run_request.item,
            &from,
            belief,
            run_request.base.as_ref(),
            context.dir(),
            &locks()?,
        )?;
        if made.is_new {
            let (dir, branch) = (made.dir.display(), &made.branch);
            notes.push(format!("made the worktree {dir} on branch {branch}"));
        }
        dir = Some(made.dir);
    }
    let dir = match dir {
        // It is as the dispatcher made it, and nothing in it is looked at.
        Some(dir) if is_place => Some(dir.to_string_lossy().into_owned()),
        Some(dir) => Some(place(&dir)?.dir),
        None => None,
    };
    let here = here.to_string_lossy().into_owned();
    let worktree = around(std::path::Path::new(dir.as_deref().unwrap_or(&here)));
    let asked = prompts(run_request, (worktree.as_ref(), trusted), &mut notes)?;
    Ok(Composed {
        order: RunOrder {
            run: new_id(context).to_string(),
            agent: run_request.agent.to_string(),
            role: run_request.role.to_string(),
            item: run_request.item.to_string(),
            dir,
            here,
            fresh: run_request.fresh,
            exclusive: run_request.exclusive,
            shares_dir: run_request.shares_dir,
            leave: run_request.leave,
            trusted,
            timeout_ms: run_request.timeout.map(millis),
            budget_usd: budget(context, run_request)?,
            wait_ms: millis(run_request.wait),
            skill: asked.skill,
            variables: asked.variables,
            prompts: asked.prompts,
            arguments: run_request.arguments.clone(),
            trigger: Trigger::Call.as_str().to_owned(),
            goes_on: None,
            agent_home: conversation::here(context, &run_request.agent, &run_request.item)
                .agent_home,
            dispatched: false,
            env: Vec::new(),
            wrap: Vec::new(),
            place: None,
            note: None,
            model: None,
            job: None,
        },
        notes,
    })
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// The cost limit: as requested, or else from the settings, for agents that accept one; at most what is left of the day.
/// Refused if a budget is used up.
fn budget(context: &mut Context, run_request: &RunRequest) -> Result<Option<f64>, Problem> {
    let takes = Driver::of(&context.settings, &run_request.agent)?
        .runs()
        .spec()
        .takes_budget;
    if run_request.budget.is_some() && !takes {
        let message = format!("{} cannot be given a budget", run_request.agent);
        let hint = Hint::step("omit --budget; --timeout limits how long it runs");
        return Err(Problem::new(Class::Usage, "usage", message, hint));
    }
    let own = run_request.budget.or(context.settings.budgets.run);
    let most = at_most_left(context, &run_request.item, own)?;
    Ok(most.filter(|_| takes))
}

/// A cost limit, or what is left of the day if that is less.
fn at_most_left(
    context: &mut Context,
    item: &Key,
    most: Option<f64>,
) -> Result<Option<f64>, Problem> {
    let budgets = context.settings.budgets;
    let left = context.service().run_budget(item, &budgets)?.value;
    Ok(match (most, left) {
        (Some(most), Some(left)) => Some(most.min(left)),
        (most, left) => most.or(left),
    })
}

fn not_in_repository(dir: &std::path::Path) -> Problem {
    let message = format!("{} is not in a git repository", dir.display());
    let hint = Hint::step("omit --worktree, or run it in the item's repository");
    Problem::new(Class::Usage, "usage", message, hint)
}

struct PromptParts {
    prompts: Prompts,
    skill: Option<String>,
    variables: Variables,
}

fn prompts(
    run_request: &RunRequest,
    (worktree, trusted): (Option<&Worktree>, bool),
    notes: &mut Vec<String>,
) -> Result<PromptParts, Problem> {
    let (name, given) = match &run_request.ask {
        Prompt::Text(text) if text.trim().is_empty() => {
            let hint = Hint::step("pass --prompt, --prompt-file or --skill");
            let message = "the prompt is empty";
            return Err(Problem::new(Class::Usage, "usage", message, hint));
        }
        Prompt::Text(text) => {
            let whole = prompt::compose(&run_request.item, text);
            return Ok(PromptParts {
                prompts: Prompts {
                    fresh: whole.clone(),
                    resume: whole,
                },
                skill: None,
                variables: Variables::new(),
            });
        }
        Prompt::Skill(name, given) => (name, given),
    };
    let variables = with_own(given, &run_request.agent, &run_request.item);
    let user = user_dir(&tenure_host::env::var);
    let mut skills = Skills::trusting(user.as_deref(), worktree, trusted);
    if let Some(base) = &run_request.skills {
        skills = skills.in_base(base);
    }
    let fresh = skills.require(name, TurnKind::Fresh)?;
    let resume = skills.require(name, TurnKind::Resume)?;
    notes.push(format!("rendered the prompt from {}", fresh.file));
    if resume.stands_in {
        notes.push(format!(
            "skill {name} has no delta; a resumed conversation gets its whole text"
        ));
    } else {
        notes.push(format!("a resumed conversation gets {}", resume.file));
    }
    let rendered = |skill: &Skill| {
        let text = skill.render(&variables)?;
        Ok::<_, Problem>(prompt::compose(&run_request.item, &text))
    };
    Ok(PromptParts {
        prompts: Prompts {
            fresh: rendered(&fresh)?,
            resume: rendered(&resume)?,
        },
        skill: Some(name.to_string()),
        variables,
    })
}

/// Adds the agent and the item, which every template can use.
fn with_own(given: &Variables, agent: &AgentName, item: &Key) -> Variables {
    let mut all = given.clone();
    for (name, value) in [("agent", agent.as_str()), ("item", item.as_str())] {
        all.entry(name.to_owned())
            .or_insert_with(|| value.to_owned());
    }
    all
}

/// An order that continues a run that was cut off.
pub fn go_on(context: &mut Context, name: &str) -> Result<Composed, Problem> {
    let run = context.service().run_record(name)?.value;
    let Some(end) = &run.end else {
        return Err(refused(&run, "it has not ended"));
    };
    if end.outcome == Outcome::Done {
        return Err(refused(&run, "it is done"));
    }
    let (outcome, at) = (end.outcome, end.at);
    let old = match run
        .log
        .as_ref()
        .map(|log| RunOrder::read(&RunFiles::at(log)))
    {
        Some(Ok(old)) => old,
        Some(Err(_)) | None => return Err(refused(&run, "the files of its log are gone")),
    };
    let here = std::path::Path::new(&run.dir);
    let request = PlanRequest {
        agent: run.agent.clone(),
        role: run.role.clone(),
        item: run.item.clone(),
        here: conversation::home(context, &run.agent, &run.item, here)?,
        fresh: false,
    };
    let planned = context.service().plan_run(&request)?.value;
    let takes_budget = Driver::of(&context.settings, &run.agent)?
        .runs()
        .spec()
        .takes_budget;
    let most = at_most_left(context, &run.item, old.budget_usd)?;
    let current = planned.current.map(|current| current.native_id);
    let same = current.is_some() && current == run.after;
    let was_begun = run.begun_at.is_some();
    let mut order = RunOrder {
        run: new_id(context).to_string(),
        dir: current.is_none().then(|| run.dir.clone()),
        here: run.dir.clone(),
        fresh: false,
        trigger: Trigger::Resume.as_str().to_owned(),
        goes_on: Some(run.id.to_string()),
        agent_home: conversation::here(context, &run.agent, &run.item).agent_home,
        budget_usd: most.filter(|_| takes_budget),
        job: None,
        ..old
    };
    if going_on::what_to_send(was_begun, same) == Send::Continue {
        let text = continue_text(&order, outcome, at)?;
        order.prompts.resume = prompt::compose(&run.item, &text);
    } else {
        order.prompts.resume = order.prompts.fresh.clone();
    }
    Ok(Composed {
        order,
        notes: Vec::new(),
    })
}

/// The skill's own text for a turn that was cut off, or else ours.
fn continue_text(
    order: &RunOrder,
    outcome: Outcome,
    at: tenure_core::time::Timestamp,
) -> Result<String, Problem> {
    let ours = || going_on::continue_text(outcome, at);
    let Some(skill) = &order.skill else {
        return Ok(ours());
    };
    let name = SkillName::parse(skill)?;
    let worktree = git::worktree(std::path::Path::new(&order.here));
    let user = user_dir(&tenure_host::env::var);
    let skills = Skills::trusting(user.as_deref(), worktree.as_ref(), order.trusted);
    let Some(found) = skills.find(&name, TurnKind::Continue)? else {
        return Ok(ours());
    };
    let mut variables = order.variables.clone();
    variables.insert("why".to_owned(), going_on::why(outcome).to_owned());
    variables.insert("when".to_owned(), at.to_string());
    found.render(&variables)
}

fn refused(run: &Run, why: &str) -> Problem {
    let error = RunError::NotResumable {
        run: RunId::clone(&run.id),
        why: why.to_owned(),
    };
    tenure_service::error::Error::from(error).into()
}
