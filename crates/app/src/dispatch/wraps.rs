//! Whether the wraps of the rules work and keep secrets: checked by `dispatch check`, and before the first run under
//! each.
//!
//! A wrap that passed is remembered by a file in the state directory, named after its words. *Limit*: what changes
//! outside those words (another program of the same name, another mode of a directory) is found by `dispatch check`.

use std::io;
use std::path::{Path, PathBuf};

use tenure_core::id::RunId;
use tenure_core::queue::Job;
use tenure_core::world::World;
use tenure_host::{digest, file};
use tenure_service::answer::{Class, Hint, Problem};

use super::config::Checked;
use super::fault::{self, Fault};
use crate::location;
use crate::open::Context;
use crate::places::WrapCheck;

/// Where it is remembered which wraps passed, in the state directory.
const PASSED: &str = "wraps";

/// Checks every wrap of a file, and says what wraps cannot do.
pub fn check_wraps(checked: &mut Checked) -> Result<(), Problem> {
    let config = &checked.config;
    let wrapped = |rule: &&tenure_core::dispatch::Rule| !rule.action.wrap.is_empty();
    if !config.rules.rules.iter().any(|rule| wrapped(&rule)) {
        return Ok(());
    }
    location::make_state_dir()?;
    let state = location::state_path().ok_or_else(|| cannot(&"HOME is not set"))?;
    let state = fs_err::canonicalize(state).map_err(|error| cannot(&error))?;
    let (locks, machine) = (location::locks()?, location::machine()?);
    let secrets = config.secret_files();
    let mut faults = Vec::new();
    let mut seen: Vec<&[String]> = Vec::new();
    for (rule, line) in config.rules.rules.iter().zip(&config.wrap_lines) {
        if rule.action.wrap.is_empty() || seen.contains(&rule.action.wrap.as_slice()) {
            continue;
        }
        seen.push(&rule.action.wrap);
        let run = RunId::mint(machine.random());
        let check = WrapCheck {
            state: &state,
            locks: &locks,
            wrap: &rule.action.wrap,
            places: config.places.as_deref(),
            secrets: &secrets,
            run: &run,
        };
        if let Err(why) = check.run() {
            faults.push(Fault {
                line: *line,
                key: format!("rule {}: wrap", rule.name),
                why: why.to_string(),
            });
        }
    }
    if config.places.is_some() {
        let note =
            "places: agents of one user can read each other's working copies and conversations";
        checked.notes.push(note.to_owned());
    }
    let note = "submodules and LFS objects are not carried into an agent's working copy";
    checked.notes.push(note.to_owned());
    if faults.is_empty() {
        return Ok(());
    }
    Err(fault::problem(&config.file, faults))
}

/// Checks the wrap of a job, unless it passed before.
pub(crate) fn passes(context: &Context, job: &Job) -> Result<(), Problem> {
    let (wrap, code) = (&job.spec.wrap, &job.spec.code);
    if wrap.is_empty() {
        return Ok(());
    }
    let state = fs_err::canonicalize(context.dir()).map_err(|error| cannot(&error))?;
    let words = format!("{wrap:?} {:?} {:?}", code.places, code.secrets);
    let passed = state.join(PASSED).join(digest::sha256(words.as_bytes()));
    if passed.exists() {
        return Ok(());
    }
    let forge = code.forge.as_ref().map(|forge| &forge.credential.file);
    let push = code.push.as_ref().map(|push| &push.file);
    let key = code
        .model
        .as_ref()
        .and_then(|model| model.key_file.as_ref());
    let secrets: Vec<PathBuf> = [forge, push, key]
        .into_iter()
        .flatten()
        .chain(&code.secrets)
        .map(PathBuf::from)
        .collect();
    let run = RunId::mint(context.machine().random());
    let check = WrapCheck {
        state: &state,
        locks: &location::locks()?,
        wrap,
        places: code.places.as_deref().map(Path::new),
        secrets: &secrets,
        run: &run,
    };
    check.run().map_err(|why| cannot(&why))?;
    let stored: io::Result<()> = file::make_dirs(&state.join(PASSED))
        .and_then(|()| file::write_private(&passed, words.as_bytes()));
    stored.map_err(|error| cannot(&error))
}

fn cannot(why: &dyn std::fmt::Display) -> Problem {
    let message = format!("the wrap of the rule cannot be used: {why}");
    let hint = Hint::run("dispatch", ["check"], "to check every wrap");
    Problem::new(Class::Invalid, "wrap", message, hint)
}
