//! Whether the wrap of a job works and keeps secrets: checked before the first run under each.
//!
//! A wrap that passed is remembered by a file in the state directory, named after its words. *Limit*: what changes
//! outside those words (another program of the same name, another mode of a directory) is found by `dispatch check`.

use std::io;
use std::path::{Path, PathBuf};

use tenure_app::location;
use tenure_app::open::Context;
use tenure_core::id::RunId;
use tenure_core::queue::Job;
use tenure_core::world::World;
use tenure_host::{digest, file};
use tenure_service::answer::{Class, Hint, Problem};

use crate::places::WrapCheck;

/// Where it is remembered which wraps passed, in the state directory.
const PASSED: &str = "wraps";

/// Checks the wrap of a job, unless it passed before.
pub fn passes(context: &Context, job: &Job) -> Result<(), Problem> {
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

/// A wrap that cannot be used.
pub fn cannot(why: &dyn std::fmt::Display) -> Problem {
    let message = format!("the wrap of the rule cannot be used: {why}");
    let hint = Hint::run("dispatch", ["check"], "to check every wrap");
    Problem::new(Class::Invalid, "wrap", message, hint)
}
