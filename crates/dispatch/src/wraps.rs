//! Whether the wraps of the rules work and keep secrets, for `dispatch check`. A run checks its own before it begins.

use tenure_core::id::RunId;
use tenure_core::world::World;
use tenure_service::answer::Problem;

use super::config::Checked;
use super::fault::{self, ConfigFault};
use tenure_app::location;
use tenure_runs::places::WrapCheck;
use tenure_runs::wraps::cannot;

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
            faults.push(ConfigFault {
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
