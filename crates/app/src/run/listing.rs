//! Whether an agent still has a conversation that it said it does not know.
//!
//! Where it keeps no file for each, its own list is asked: its own command, in the environment of the run. That takes
//! seconds, so it is asked only where the answer decides something. One that fails, or does not end in time, tells
//! nothing. A file in which the model never answered may be one that the agent does not count as a conversation.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tenure_agents::run::{Keeps, Launch};
use tenure_core::conversation::Home;
use tenure_core::conversation::fitness::Existence;
use tenure_core::id::NativeId;
use tenure_core::world::World;
use tenure_host::pidfd::ProcessWatch;
use tenure_host::process;

use super::runner::Runner;
use super::{existence, program};

const ANSWERS_WITHIN: Duration = Duration::from_secs(60);
/// No list is longer.
const LONGEST: u64 = 16 << 20;
/// A longer file has answers.
const LONGEST_UNANSWERED: u64 = 4 << 20;

impl Runner {
    /// Whether the agent still has a conversation that it did not find: by its file, else by its own list.
    pub(super) fn looks_again(&self, native_id: &NativeId, home: &Home) -> Existence {
        match (
            self.looks_for(native_id, home),
            self.driver.runs().spec().keeps,
        ) {
            (Existence::CannotTell, Keeps::Listed { command, found, .. }) => {
                match self.printed(command, Path::new(&home.dir)) {
                    // It prints nothing where it has none.
                    Some(list) if list.trim().is_empty() => Existence::Absent,
                    Some(list) => found(&list, native_id),
                    None => Existence::CannotTell,
                }
            }
            (
                Existence::Present,
                Keeps::File {
                    answered: Some(mark),
                    ..
                },
            ) if self.never_answered(native_id, mark) => Existence::Absent,
            (found, _) => found,
        }
    }

    /// Whether the model never answered in a conversation, so that a new one loses nothing.
    fn never_answered(&self, native_id: &NativeId, mark: &str) -> bool {
        let file = existence::file(&self.agent, native_id, &tenure_host::env::var);
        let text = file.and_then(|file| tenure_host::read::text(&file, LONGEST_UNANSWERED).ok());
        text.is_some_and(|text| !text.contains(mark))
    }

    /// What one of the agent's commands printed in a directory, if it succeeded.
    fn printed(&self, command: &[&str], dir: &Path) -> Option<String> {
        let launch = Launch {
            resume: None,
            intended: None,
            title: "",
            dir: dir.to_str()?,
            trusted: self.order.trusted,
            budget_usd: None,
            arguments: &[],
            prompt_file: None,
        };
        let variables = self.variables(&launch).ok()?;
        let mut words: Vec<OsString> = command.iter().map(OsString::from).collect();
        let path = variables.get(std::ffi::OsStr::new("PATH"));
        let below = self.driver.runs().spec().program_below_script;
        program::resolve(&mut words, path.map(AsRef::as_ref), dir, below).ok()?;
        let (program, arguments) = words.split_first()?;
        let file = self.files.dir().join("list");
        let output = fs_err::File::create(&file).ok()?.into_parts().0;
        let mut child = Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(&variables)
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let own = process::identify(child.id(), self.context.machine().observer()).ok();
        let watch = own.as_ref().and_then(ProcessWatch::open);
        let ended = watch.is_none_or(|watch| watch.wait(ANSWERS_WITHIN).is_ok_and(|gone| gone));
        if !ended && child.kill().is_err() {
            // It is gone already.
        }
        let status = child.wait().ok()?;
        let text = tenure_host::read::text(&file, LONGEST).ok();
        if fs_err::remove_file(&file).is_err() {
            // It goes with the log.
        }
        text.filter(|_| ended && status.success())
    }
}
