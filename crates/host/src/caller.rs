//! The caller: its ancestry and the variables that name a session, gathered before any transaction.
//!
//! This module only gathers; core decides which fact counts. A variable that is empty or not UTF-8 counts as
//! unset, because no id looks like that.

use std::ffi::OsString;
use std::io::IsTerminal;

use tenure_core::agent::AGENTS;
use tenure_core::process::{CallerFacts, NativeVariable, Observer};
use tenure_core::repository::Repository;

use crate::{env, process};

pub use tenure_core::process::{RUN_VARIABLE, SESSION_VARIABLE};

/// The facts about this process as a caller that works in `dir`, which is in `repository`.
pub fn facts(observer: Observer, dir: String, repository: Option<Repository>) -> CallerFacts {
    let (chain, chain_broken) = process::chain(&observer);
    CallerFacts {
        chain,
        chain_broken,
        has_terminal: process::has_terminal(),
        at_terminal: std::io::stdin().is_terminal() && std::io::stderr().is_terminal(),
        dir,
        repository,
        ..variables(observer)
    }
}

/// The facts from the environment alone, for a caller whose ancestry is read elsewhere.
pub fn variables(observer: Observer) -> CallerFacts {
    CallerFacts {
        observer,
        chain: Vec::new(),
        chain_broken: None,
        has_terminal: false,
        at_terminal: false,
        session_variable: text(&env::var, SESSION_VARIABLE),
        native_variables: native_variables(&env::var),
        dir: String::new(),
        repository: None,
        token: None,
    }
}

fn text(env: &dyn Fn(&str) -> Option<OsString>, name: &str) -> Option<String> {
    let value = env(name)?.into_string().ok()?;
    (!value.is_empty()).then_some(value)
}

fn native_variables(env: &dyn Fn(&str) -> Option<OsString>) -> Vec<NativeVariable> {
    AGENTS
        .iter()
        .filter_map(|spec| {
            let name = spec.id_variable?;
            Some(NativeVariable {
                agent: spec.name,
                name,
                value: text(env, name)?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn empty_and_unreadable_variables_are_unset() {
        let env = |name: &str| match name {
            "CLAUDE_CODE_SESSION_ID" => Some(OsString::from("abc")),
            "CODEX_THREAD_ID" => Some(OsString::new()),
            "GEMINI_SESSION_ID" => Some(OsString::from_vec(vec![0xff])),
            _ => None,
        };
        let found = native_variables(&env);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].agent, found[0].value.as_str()), ("claude", "abc"));
        assert_eq!(text(&env, SESSION_VARIABLE), None);
    }
}
