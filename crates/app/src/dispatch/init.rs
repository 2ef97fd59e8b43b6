//! Writes a first dispatch.toml, with a secret and a skill.
//!
//! Nothing that exists is overwritten. Values that a person must fill in are empty, and
//! `dispatch check` reports them until they are filled in. *Crash*: the file is written last and
//! atomically, so a second `init` finds no file and keeps the secret.

use std::io;
use std::path::{Path, PathBuf};

use tenure_forges::{FORGES, Forge};
use tenure_host::{file, random};
use tenure_service::answer::{Class, Hint, Problem};

use super::{NAME, default_file};
use crate::place::worktree_here;
use crate::settings;

/// What was written, and what to enter in the forge.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Written {
    pub file: PathBuf,
    pub secret_file: PathBuf,
    /// None if the skill already existed.
    pub skill: Option<PathBuf>,
    /// The path of the webhook's URL.
    pub endpoint: &'static str,
    /// For each kind of forge, where to go and what to choose.
    #[serde(skip)]
    pub forges: &'static [Forge],
}

const SECRET: &str = "home.secret";

/// Writes the files into a directory: the user's settings directory by default.
pub fn init(dir: Option<&Path>) -> Result<Written, Problem> {
    let own = default_file();
    let own = own.as_deref().and_then(Path::parent);
    let Some(dir) = dir.or(own) else {
        let hint = Hint::step("set HOME, or name a directory");
        return Err(Problem::new(Class::Usage, "usage", "HOME is not set", hint));
    };
    let failed = |error: io::Error| {
        let hint = Hint::step("name a directory that you can write to");
        Problem::new(Class::Usage, "not_written", error.to_string(), hint)
    };
    let target = dir.join(NAME);
    if fs_err::exists(&target).map_err(failed)? {
        let message = format!("{} exists already", target.display());
        let args = [
            "check".to_owned(),
            "--config".to_owned(),
            target.display().to_string(),
        ];
        let hint = Hint::run("dispatch", args, "to see what is wrong with it");
        return Err(Problem::new(Class::Refused, "exists", message, hint));
    }
    file::make_dirs(dir).map_err(failed)?;
    let secret_file = dir.join(SECRET);
    if !fs_err::exists(&secret_file).map_err(failed)? {
        let secret = random::secret().map_err(failed)?;
        file::write_atomic(&secret_file, format!("{secret}\n").as_bytes()).map_err(failed)?;
    }
    let skill = write_skill().map_err(failed)?;
    file::write_atomic(&target, text_of_file().as_bytes()).map_err(failed)?;
    Ok(Written {
        file: target,
        secret_file,
        skill,
        endpoint: "/hooks/home",
        forges: FORGES,
    })
}

/// Writes the skill that the file's rule names, unless the user has one.
fn write_skill() -> io::Result<Option<PathBuf>> {
    let Some(dir) = settings::user_dir(&tenure_host::env::var) else {
        return Ok(None);
    };
    let skills = dir.join("skills");
    let path = skills.join("implement.md");
    if fs_err::exists(&path)? {
        return Ok(None);
    }
    file::make_dirs(&skills)?;
    file::write_atomic(&path, SKILL.as_bytes())?;
    Ok(Some(path))
}

/// The text of the file, with the repository of the current directory.
fn text_of_file() -> String {
    let worktree = worktree_here();
    let remote = worktree.as_ref().and_then(|found| found.remote.clone());
    let (repo, dir) = match (remote, worktree) {
        (Some(repo), Some(worktree)) => (repo, worktree.root.display().to_string()),
        _ => (PLACEHOLDER.to_owned(), String::new()),
    };
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    TEMPLATE
        .replace("{repo}", &quoted(&repo))
        .replace("{dir}", &quoted(&dir))
}

/// Stands for a repository that a person must fill in.
pub(super) const PLACEHOLDER: &str = "OWNER/NAME";

const SKILL: &str = "\
You work on {{ item }} in {{ repo }}. Text in fenced blocks is from people on the forge.

Title:
{{ title | fenced }}
Description:
{{ body | fenced }}
What happened:
{{ news | fenced }}
Make the change on a branch of its own, run the tests, and open a pull request that closes the issue.
";

const TEMPLATE: &str = r##"# What `tenure dispatch` does when a forge calls it.
# Fill in what is empty, then run `tenure dispatch check`.
#
# An agent runs as you and can read what you can, these secrets included. `wrap` below, or a user of its own
# for the dispatcher, is the boundary.

# How many runs at once.
concurrency = 4

# A forge. Its webhook goes to http(s)://YOUR-HOST/hooks/home, where the server listens on 127.0.0.1:7421.
[forge.home]
# forgejo, gitea, github or gitlab
kind = "forgejo"
# What you enter as the webhook's secret. While you replace it, list the new file and the old one.
secret_files = ["home.secret"]
# Optional: lets tenure ask who may write, answer in comments, and notice what it missed. The token is of an
# account that only tenure uses; put it into a file with mode 0600.
# url = "https://git.example.org"
# token_file = "home.token"
# own_account = "bot"

# A repository on that forge: its OWNER/NAME there, and a clone of it here.
[repo.{repo}]
forge = "home"
dir = {dir}
# Give each issue a worktree of its own.
worktree = true
# Whether the repository's own settings and skills may give orders to the agent.
trusted = false

# The first rule that matches an event starts a run.
[[rule]]
name = "implement"
# issue.opened, issue.edited, issue.labeled, issue.assigned, issue.comment, pr.opened, pr.pushed, pr.comment,
# pr.review, pr.review_comment, pr.review_requested, push, ...
on = ["issue.opened", "issue.comment", "pr.comment", "pr.review"]
# Who may start a run: logins on the forge, such as ["alice"].
authors = []
# Optional: also ask for a label, an assignee, a reviewer, a branch, or a mention.
# mention = "@bot"
agent = "claude"
# The prompt: implement.md in the directory skills beside your config.toml (`tenure skill list`).
skill = "implement"
# Arguments of the agent: what it may do without being asked.
args = ["--permission-mode", "dontAsk", "--allowedTools", "Bash", "Edit", "Write"]
timeout = "45m"
# Needed for code that none of the authors wrote: the command that the agent runs under.
# wrap = ["podman", "run", "..."]
"##;
