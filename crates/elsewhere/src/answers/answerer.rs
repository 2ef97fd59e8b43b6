//! Who may answer: a person at a terminal, or a token at the server of this machine. Never an agent, directly or through
//! a program.

use tenure_app::open::Context;
use tenure_core::agent;
use tenure_host::caller::{RUN_VARIABLE, SESSION_VARIABLE};
use tenure_host::{env, terminal};
use tenure_service::answer::{Class, Hint, Problem};

/// Somebody who may answer. It is made only by the checks below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answerer {
    /// Who, and where, for the log.
    name: String,
}

impl Answerer {
    /// The person who typed this command: no agent is above it, nothing in its environment names a session or a run, and
    /// it is in the foreground of the terminal that controls it.
    pub fn person(context: &mut Context) -> Result<Self, Problem> {
        context.service().only_person("answer a question")?;
        let facts = &context.facts;
        let native = facts.native_variables.first().map(|found| found.name);
        let is_set = |name: &'static str| env::var(name).map(|_| name);
        let named = is_set(SESSION_VARIABLE).or_else(|| is_set(RUN_VARIABLE));
        if let Some(name) = named.or(native) {
            return Err(refused(&format!(
                "{name} is set, as it is in what agents start"
            )));
        }
        if let Some(why) = &facts.chain_broken {
            return Err(refused(&format!(
                "not all of its ancestors can be seen: {why}"
            )));
        }
        let mut above = facts.chain.iter();
        if let Some(found) = above.find_map(|one| agent::agent_of(&one.looks)) {
            return Err(refused(&format!("{} runs it", found.name)));
        }
        let terminal = terminal::of_person(&facts.chain).map_err(refused)?;
        let from = env::var("SSH_CONNECTION").and_then(|from| from.into_string().ok());
        let from = from.and_then(|from| Some(from.split(' ').next()?.to_owned()));
        let from = from.map_or_else(String::new, |from| format!(" from {from}"));
        let user = rustix::process::getuid().as_raw();
        Ok(Self {
            name: format!("uid {user} at {terminal}{from}"),
        })
    }

    /// A token that may act, whose server checked it. The server answers only for its own user and machine.
    pub fn token(name: &str) -> Self {
        Self {
            name: format!("token {name}"),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

fn refused(why: &str) -> Problem {
    let message = format!("only a person at a terminal can answer a question: {why}");
    let hint = Hint::step("answer in a terminal of your own, or in the agent's window");
    Problem::new(Class::Refused, "person_only", message, hint)
}
