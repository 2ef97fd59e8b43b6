//! One checked rule of the file.

use tenure_core::dispatch::publish::Publishing;
use tenure_core::dispatch::{Action, BranchPattern, Caps, OnClose, Reply, Rule, When};
use tenure_core::forge::{Association, EventKind};
use tenure_core::id::{AgentName, Malformed, WorkerRole};
use tenure_core::key::Key;
use tenure_core::queue::code::ModelSocket;
use tenure_core::skill::{SkillName, TurnKind};
use tenure_core::spelling;
use tenure_service::answer::Problem;

use super::document::Section;
use super::forge_config::{RepoCheckout, is_secure};
use super::raw::RawRule;
use super::reading::Reading;
use tenure_runs::skill::Skills;
use tenure_runs::{can_start, takes_arguments, variables, wrap};

/// A rule and its line in the file.
pub(super) type PlacedRule = (usize, Rule);

/// Checks a rule; `None` if its action cannot be understood. Faults are reported in any case.
pub(super) fn rule(
    reading: &mut Reading<'_>,
    section: &Section<'_>,
    place: usize,
    raw: &RawRule,
    repos: &[RepoCheckout],
) -> Option<Rule> {
    let name = raw
        .name
        .clone()
        .unwrap_or_else(|| format!("rule-{}", place + 1));
    if name.trim().is_empty() {
        reading.faults.push(section.fault("name", "it is empty"));
    }
    let when = when(reading, section, raw);
    let action = action(reading, section, raw);
    if let Some(action) = &action {
        has_skill(reading, section, &when, action, repos);
        has_arguments(reading, section, &when, action, repos);
        has_wrap(reading, section, action);
    }
    Some(Rule {
        name,
        when: when?,
        action: action?,
        goes_on: raw.goes_on,
    })
}

fn when(reading: &mut Reading<'_>, section: &Section<'_>, raw: &RawRule) -> Option<When> {
    let before = reading.faults.len();
    let on = all(reading, section, "on", &raw.on, EventKind::parse);
    let associations = all(
        reading,
        section,
        "associations",
        &raw.associations,
        Association::parse,
    );
    let branch = raw.branch.as_deref().map(BranchPattern::parse).transpose();
    let branch = kept(reading, section, "branch", branch).flatten();
    for (key, text) in [
        ("label", &raw.label),
        ("mention", &raw.mention),
        ("assignee", &raw.assignee),
        ("reviewer", &raw.reviewer),
    ] {
        if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
            reading.faults.push(section.fault(key, "it is empty"));
        }
    }
    if raw
        .authors
        .iter()
        .any(|author| author.trim().is_empty() || author.starts_with('@'))
    {
        let why = "expected logins without @, or id:NUMBER";
        reading.faults.push(section.fault("authors", why));
    }
    (reading.faults.len() == before).then(|| When {
        repo: raw.repo.as_deref().map(spelling::repository_name),
        on,
        authors: raw.authors.clone(),
        associations,
        label: raw.label.clone(),
        mention: raw.mention.clone(),
        assignee: raw.assignee.clone(),
        reviewer: raw.reviewer.clone(),
        branch,
    })
}

fn action(reading: &mut Reading<'_>, section: &Section<'_>, raw: &RawRule) -> Option<Action> {
    let agent = kept(reading, section, "agent", AgentName::parse(&raw.agent));
    if let Some(agent) = &agent
        && let Err(problem) = tenure_runs::can_run(reading.settings, agent)
    {
        reading.faults.push(section.fault("agent", problem.message));
    }
    // A conversation that is used once must not replace the one that other rules continue.
    let role = match (raw.fresh, raw.role.is_empty()) {
        (true, true) => &raw.skill,
        _ => &raw.role,
    };
    let role = kept(reading, section, "role", WorkerRole::parse(role));
    let skill = kept(reading, section, "skill", SkillName::parse(&raw.skill));
    let timeout = raw.timeout.as_deref();
    let timeout = timeout.and_then(|text| reading.span(section, "timeout", text));
    let reply = raw
        .reply
        .as_deref()
        .map_or(Ok(Reply::Nothing), Reply::parse);
    let reply = kept(reading, section, "reply", reply);
    let on_close = raw
        .on_close
        .as_deref()
        .map_or(Ok(OnClose::Finish), OnClose::parse);
    let on_close = kept(reading, section, "on_close", on_close);
    for variable in &raw.env {
        if let Err(why) = is_variable(variable) {
            reading
                .faults
                .push(section.fault("env", format!("{variable:?} {why}")));
        }
    }
    if raw.wrap.first().is_some_and(|word| word.trim().is_empty()) {
        reading
            .faults
            .push(section.fault("wrap", "its first word is the command, and it is empty"));
    }
    let is_bad = |usd: f64| !usd.is_finite() || usd <= 0.0;
    if raw.caps.runs_per_hour == Some(0) || raw.caps.usd_per_day.is_some_and(is_bad) {
        reading
            .faults
            .push(section.fault("caps", "a cap must be more than 0"));
    }
    let publishing = publishing(reading, section, raw);
    let model = model(reading, section, raw);
    Some(Action {
        agent: agent?,
        role: role?,
        skill: skill?,
        fresh: raw.fresh,
        args: raw.args.clone(),
        env: raw.env.clone(),
        wrap: raw.wrap.clone(),
        exclusive: raw.exclusive,
        timeout,
        caps: Caps {
            runs_per_hour: raw.caps.runs_per_hour,
            usd_per_day: raw.caps.usd_per_day,
        },
        reply: reply?,
        on_close: on_close?,
        publishing,
        model,
    })
}

fn publishing(reading: &mut Reading<'_>, section: &Section<'_>, raw: &RawRule) -> Publishing {
    let asks = match raw.publish.as_deref() {
        None => false,
        Some("ask") => true,
        Some(_) => {
            let why = "expected \"ask\": every result waits for a person";
            reading.faults.push(section.fault("publish", why));
            false
        }
    };
    for (key, is_set) in [
        ("publish", asks),
        ("workflows", raw.workflows),
        ("open_pr", raw.open_pr),
    ] {
        if is_set && !raw.push {
            let why = "it needs push = true";
            reading.faults.push(section.fault(key, why));
        }
    }
    let mut fault = |key: &str, why: &str| reading.faults.push(section.fault(key, why));
    let is_thread = |on: &String| on.starts_with("issue.") || on.starts_with("pr.");
    if raw.open_pr && !raw.on.iter().all(is_thread) {
        fault(
            "open_pr",
            "it is for events of issues and pull requests only",
        );
    }
    if raw.merge {
        if raw.on != [EventKind::PullApproved.as_str()] {
            fault(
                "merge",
                "it needs on = [\"pr.approved\"]: the approved commit is merged",
            );
        }
        if raw.push {
            fault(
                "merge",
                "it cannot be used with push = true: a commit that nobody approved would be the head",
            );
        }
    }
    Publishing {
        push: raw.push,
        asks,
        workflows: raw.workflows,
        open_pr: raw.open_pr,
        merge: raw.merge,
    }
}

/// The model that `{socket}` in a wrap leads to.
fn model(reading: &mut Reading<'_>, section: &Section<'_>, raw: &RawRule) -> Option<ModelSocket> {
    let uses = raw.wrap.iter().any(|word| word.contains("{socket}"));
    let Some(model) = &raw.model else {
        if uses {
            let why = "it is missing, but {socket} in wrap needs it";
            reading.faults.push(section.fault("model", why));
        }
        return None;
    };
    if !uses {
        let why = "wrap has no {socket} that leads to it";
        reading.faults.push(section.fault("model", why));
    }
    if !is_secure(&model.url) {
        let why = "expected a url that begins with https://, or one on this machine with http://";
        reading.faults.push(section.fault("model", why));
    }
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    let header = model.key_header.as_deref();
    if header.is_some_and(|name| name.is_empty() || !name.bytes().all(plain)) {
        let why = "key_header is not the name of a header";
        reading.faults.push(section.fault("model", why));
    }
    if let Some(file) = &model.key_file {
        reading.secret(section, "model", file);
    }
    let whole = |file: &String| {
        let file = reading.path(file);
        let file = std::path::absolute(&file).unwrap_or(file);
        file.to_string_lossy().into_owned()
    };
    Some(ModelSocket {
        url: model.url.clone(),
        key_file: model.key_file.as_ref().map(whole),
        key_header: model.key_header.clone(),
    })
}

/// Checks that the skill exists for every repository of the rule.
fn has_skill(
    reading: &mut Reading<'_>,
    section: &Section<'_>,
    when: &Option<When>,
    action: &Action,
    repos: &[RepoCheckout],
) {
    let named = when.as_ref().and_then(|when| when.repo.as_ref());
    let is_meant = |known: &&RepoCheckout| named.is_none_or(|name| *name == known.end.name);
    for known in repos.iter().filter(is_meant) {
        let skills = Skills::trusting(reading.user, known.worktree.as_ref(), known.end.trusted);
        let Err(problem) = renders(&skills, &action.skill) else {
            let resume = skills.find(&action.skill, TurnKind::Resume).ok().flatten();
            if !action.fresh && resume.is_some_and(|skill| skill.stands_in) {
                let note = format!(
                    "skill {0} has no {0}-delta.md; a resumed conversation gets its whole text",
                    action.skill
                );
                if !reading.notes.contains(&note) {
                    reading.notes.push(note);
                }
            }
            continue;
        };
        let is_fetched_later = known.worktree.is_none() && known.end.trusted;
        if is_fetched_later {
            reading.notes.push(format!(
                "skill {} must come from {}, which is not fetched yet",
                action.skill, known.end.name
            ));
        } else {
            reading.faults.push(section.fault("skill", problem.message));
            return;
        }
    }
}

/// Checks that a run accepts the agent's extra arguments, in every repository of the rule.
fn has_arguments(
    reading: &mut Reading<'_>,
    section: &Section<'_>,
    when: &Option<When>,
    action: &Action,
    repos: &[RepoCheckout],
) {
    let named = when.as_ref().and_then(|when| when.repo.as_ref());
    let is_meant = |known: &&RepoCheckout| named.is_none_or(|name| *name == known.end.name);
    let trusted = repos.iter().filter(is_meant).all(|known| known.end.trusted);
    let takes = |trusted| takes_arguments(reading.settings, &action.agent, &action.args, trusted);
    match (takes(trusted), takes(false)) {
        (Err(why), _) => reading.faults.push(section.fault("args", why)),
        // With code from outside, the repository counts as untrusted for the run.
        (Ok(()), Err(why)) if !action.wrap.is_empty() => reading.notes.push(format!(
            "{}, args: a run on code from outside does not start with them ({why})",
            section.name
        )),
        _ => {}
    }
}

/// Checks that the command in `wrap` exists, and that its words mean something.
fn has_wrap(reading: &mut Reading<'_>, section: &Section<'_>, action: &Action) {
    for word in &action.wrap {
        let named = word
            .split_once('{')
            .and_then(|(_, rest)| rest.split_once('}'));
        let unknown = named.filter(|(name, _)| !wrap::WORDS.contains(&&*format!("{{{name}}}")));
        if let Some((name, _)) = unknown {
            let why = format!(
                "{{{name}}} stands for nothing; expected one of {}",
                wrap::WORDS.join(", ")
            );
            reading.faults.push(section.fault("wrap", why));
        }
    }
    // A path below the worktree is known only when the worktree is.
    let is_fixed = |word: &&String| !word.trim().is_empty() && !word.contains('{');
    let Some(program) = action.wrap.first().filter(is_fixed) else {
        return;
    };
    if let Err(problem) = can_start(program, reading.dir) {
        reading.faults.push(section.fault("wrap", problem.message));
    }
}

/// Checks that a skill exists and uses only variables that an event has.
fn renders(skills: &Skills<'_>, name: &SkillName) -> Result<(), Problem> {
    let item = Key::parse("issue:acme/web#1")?;
    for turn in [TurnKind::Fresh, TurnKind::Resume, TurnKind::Continue] {
        if let Some(skill) = skills.find(name, turn)? {
            skill.render(&variables(&item, &[], None))?;
        }
    }
    Ok(())
}

/// Every value of a list that can be parsed; the others are reported.
fn all<T>(
    reading: &mut Reading<'_>,
    section: &Section<'_>,
    key: &str,
    texts: &[String],
    parse: fn(&str) -> Result<T, Malformed>,
) -> Vec<T> {
    let mut found = Vec::new();
    for text in texts {
        found.extend(kept(reading, section, key, parse(text)));
    }
    found
}

/// A value that could be parsed; reports the fault otherwise.
fn kept<T>(
    reading: &mut Reading<'_>,
    section: &Section<'_>,
    key: &str,
    value: Result<T, Malformed>,
) -> Option<T> {
    value
        .map_err(|error| {
            let why = format!("{:?} is not valid: {}", error.value, error.why);
            reading.faults.push(section.fault(key, why));
        })
        .ok()
}

fn is_variable(text: &str) -> Result<(), &'static str> {
    let name = text.split_once('=').map_or(text, |(name, _)| name);
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let first = name.bytes().next();
    if first.is_none_or(|b| b.is_ascii_digit()) || !name.bytes().all(plain) {
        return Err("is not NAME or NAME=VALUE");
    }
    if name.starts_with("TENURE_") {
        return Err("is a variable that tenure sets itself");
    }
    Ok(())
}
