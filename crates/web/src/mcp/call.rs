//! One call: an open store, and which session calls.
//!
//! The caller is the session of the agent above this process. What the environment said when the server started may be
//! over (a conversation was cleared or resumed), so it counts only if no agent can be seen above. Where one process
//! hosts several sessions, ids in the request's `_meta` select one, and a session of another conversation is not the
//! caller's; the argument `session` selects one only if nothing else does.

use serde_json::{Map, Value};
use tenure_app::open::{Context, Purpose, open};
use tenure_app::{keeper, mirror};
use tenure_core::agent;
use tenure_core::notice::{Channel, Notice};
use tenure_core::process::NativeVariable;
use tenure_core::text;
use tenure_service::ActFor;
use tenure_service::answer::{Class, Hint, Problem};

use super::end::CallEnd;

/// The names under which agents send the id of a conversation, in small letters and without separators.
const ID_NAMES: [&str; 3] = ["sessionid", "threadid", "conversationid"];
/// How deep `_meta` is read.
const DEPTH: usize = 3;

/// A request that is being answered.
pub struct ToolCall {
    /// Ids of conversations that the agent sent.
    ids: Vec<String>,
    /// The session that the argument names.
    pub session: Option<String>,
    /// What may end it before its answer.
    pub end: CallEnd,
}

impl ToolCall {
    pub fn new(meta: &Value, end: CallEnd) -> Self {
        Self {
            ids: ids_in(meta),
            session: None,
            end,
        }
    }

    /// Opens the store for a call of this caller.
    pub fn open(&self, purpose: Purpose) -> Result<Context, Problem> {
        let mut context = open(purpose)?;
        name_caller(&mut context, &self.ids);
        if let Some(name) = &self.session {
            pick(&mut context, name)?;
        }
        if !self.ids.is_empty() {
            check_conversation(&mut context, &self.ids)?;
        }
        Ok(context)
    }
}

/// Selects one of the sessions that the caller's process hosts, unless it is known which of them calls.
fn pick(context: &mut Context, name: &str) -> Result<(), Problem> {
    let here = context.here();
    let own = context.service().whoami(&ActFor::default(), &here);
    let own = own.map_err(Problem::from);
    let named = ActFor {
        session: Some(name.to_owned()),
        reason: None,
    };
    let named = context.service().whoami(&named, &here).ok();
    let named = named.map(|named| named.value.who);
    let handle = match own {
        Ok(own) => {
            let own = own.value.who.session;
            if named.is_some_and(|named| named.session.id == own.id) {
                return Ok(());
            }
            own.handle
        }
        Err(problem) => {
            // Only a session of the caller's own process has a token here.
            let token = named.and_then(|named| named.resolved.token);
            if problem.kind != "ambiguous" || token.is_none() {
                return Err(problem);
            }
            context.facts.session_variable = token;
            return Ok(());
        }
    };
    let hint = Hint::step("leave the argument session out");
    let message = format!(
        "this process belongs to {handle}, not to {}",
        text::name(name)
    );
    Err(Problem::new(
        Class::Usage,
        "own_session_only",
        message,
        hint,
    ))
}

/// Fails if the caller's process hosts several sessions and none was selected.
pub fn check_selected(context: &mut Context) -> Result<(), Problem> {
    let here = context.here();
    match context.service().whoami(&ActFor::default(), &here) {
        Err(failure) => {
            let problem = Problem::from(failure);
            if problem.kind == "ambiguous" {
                return Err(problem);
            }
            Ok(())
        }
        Ok(_) => Ok(()),
    }
}

/// What every call ends with, as every verb does.
pub fn finish(context: &mut Context) {
    if context.has_mirrors() {
        // What failed is recorded, and shown by `tenure status`.
        mirror::catch_up(context);
    }
}

/// Adds to a failure what the keeper of this machine knows about it.
pub fn explain(mut problem: Problem) -> Problem {
    keeper::say_since(&mut problem);
    // What is a flag of the commands is an argument here, or nothing.
    for hint in &mut problem.hints {
        if hint.verb.is_none() && hint.why.contains("--session HANDLE") {
            *hint = Hint::step("pass one of these handles as the argument session");
        }
    }
    problem
        .hints
        .retain(|hint| hint.verb.is_some() || !hint.why.contains(" --"));
    problem
}

/// Records that an answer with these notices was written.
pub fn mark_delivered(notices: &[Notice]) {
    let marked = open(Purpose::Change).and_then(|mut context| {
        let marked = context.service().delivered(notices, Channel::Hook);
        marked.map_err(Problem::from)
    });
    if marked.is_err() {
        // They are delivered again.
    }
}

/// Notes what the request says about its caller. What the environment says counts only if no agent is above.
fn name_caller(context: &mut Context, ids: &[String]) {
    let said = ids.iter().map(|id| NativeVariable {
        agent: "",
        name: "_meta",
        value: id.clone(),
    });
    let facts = &mut context.facts;
    let of_start = (
        facts.session_variable.take(),
        std::mem::replace(&mut facts.native_variables, said.collect()),
    );
    let mut above = facts.chain.iter();
    if above.any(|one| agent::agent_of(&one.looks).is_some()) {
        return;
    }
    // An agent that tenure does not know by its program is above if it is a session.
    let here = context.here();
    let found = context.service().whoami(&ActFor::default(), &here);
    if found.is_err_and(|failure| Problem::from(failure).kind == "no_session") {
        context.facts.session_variable = of_start.0;
        context.facts.native_variables.extend(of_start.1);
    }
}

/// Fails if the request comes from a conversation that the caller's session, one of a host, was never in. Then another
/// conversation of that process calls, and it has no session.
fn check_conversation(context: &mut Context, ids: &[String]) -> Result<(), Problem> {
    let here = context.here();
    // Without a session there is nothing to act as.
    let Ok(own) = context.service().whoami(&ActFor::default(), &here) else {
        return Ok(());
    };
    let session = own.value.who.session;
    let earlier = session.native_ids.iter().flatten();
    let mut own_ids = session
        .native_id
        .iter()
        .chain(earlier.map(|one| &one.native_id))
        .peekable();
    let is_hosted = session.hosted && own_ids.peek().is_some();
    if !is_hosted || own_ids.any(|id| ids.contains(id)) {
        return Ok(());
    }
    let message = format!(
        "this request does not come from {}'s conversation",
        session.handle
    );
    let hint = Hint::step("register a session for that conversation");
    Err(Problem::new(Class::NotFound, "no_session", message, hint))
}

fn ids_in(meta: &Value) -> Vec<String> {
    let mut ids = Vec::new();
    if let Value::Object(meta) = meta {
        collect_ids(meta, DEPTH, &mut ids);
    }
    ids
}

fn collect_ids(meta: &Map<String, Value>, depth: usize, ids: &mut Vec<String>) {
    if depth == 0 {
        return;
    }
    for (name, value) in meta {
        match value {
            Value::String(id) if is_id_name(name) && !ids.contains(id) => ids.push(id.clone()),
            Value::Object(inner) => collect_ids(inner, depth - 1, ids),
            _ => {}
        }
    }
}

/// Whether this names the id of a conversation: `threadId`, `example.org/session_id`.
fn is_id_name(name: &str) -> bool {
    let last = name.rsplit(['/', '.']).next().unwrap_or(name);
    let word: String = last.chars().filter(char::is_ascii_alphanumeric).collect();
    ID_NAMES.contains(&word.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ids_are_found_under_every_spelling_and_other_values_are_not_ids() {
        let meta = json!({
            "threadId": "a",
            "example.org/session_id": "b",
            "x-agent": {"conversation-id": "c", "turn_id": "no", "deeper": {"sessionId": "a"}},
            "claudecode/toolUseId": "no",
            "progressToken": 2,
            "sessionId": 7,
        });
        assert_eq!(ids_in(&meta), ["a", "b", "c"]);
    }
}
