//! Writes a first dispatch.toml, with a secret and skills. In another repository, it adds that one to the file.
//!
//! Nothing that exists is overwritten. Values that a person must fill in are empty, and
//! `dispatch check` reports them until they are filled in. *Crash*: the file is written last and
//! atomically, so a second `init` finds no file and keeps the secret.

use std::io;
use std::path::{Path, PathBuf};

use tenure_core::forge::EventKind;
use tenure_forges::api::ApiError;
use tenure_forges::{FORGES, Forge};
use tenure_host::{file, random};
use tenure_service::answer::{Class, Hint, Problem};

use super::connection::Connection;
use super::skills::{MERGE_RULE, RULES, SKILLS};
use super::{NAME, default_file};
use tenure_app::place::worktree_here;
use tenure_app::settings;
use tenure_runs::roots;

/// What was written, and what to enter in the forge.
#[derive(Debug, Clone, serde::Serialize)]
pub struct InitReport {
    pub file: PathBuf,
    pub secret_file: PathBuf,
    /// The repository that was added to a file that existed.
    pub added: Option<String>,
    /// Skills that did not exist.
    pub skills: Vec<PathBuf>,
    /// The path of the webhook's URL.
    pub endpoint: &'static str,
    /// For each kind of forge, where to go and what to choose.
    #[serde(skip)]
    pub forges: &'static [Forge],
}

const SECRET: &str = "home.secret";
/// The longest dispatch.toml that is read.
const MAX_LENGTH: u64 = 1 << 20;

/// What is filled in.
#[derive(Debug, Clone, Default)]
pub struct InitValues {
    /// The kind of the forge.
    pub kind: Option<String>,
    /// The logins of those who may start a run.
    pub authors: Vec<String>,
    /// The forge's URL, and the file with the token.
    pub api: Option<(String, PathBuf)>,
}

/// Writes the files into a directory: the user's settings directory by default.
pub fn init(dir: Option<&Path>, known: &InitValues) -> Result<InitReport, Problem> {
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
    let secret_file = dir.join(SECRET);
    if fs_err::exists(&target).map_err(failed)? {
        if let Some(added) = add_repository(&target)? {
            return Ok(InitReport {
                file: target,
                secret_file,
                added: Some(added),
                skills: Vec::new(),
                endpoint: "/hooks/home",
                forges: FORGES,
            });
        }
        let message = format!("{} exists already", target.display());
        let args = [
            "check".to_owned(),
            "--config".to_owned(),
            target.display().to_string(),
        ];
        let hint = Hint::run("dispatch", args, "to see what is wrong with it");
        return Err(Problem::new(Class::Refused, "exists", message, hint));
    }
    let text = text_of_file(known)?;
    file::make_dirs(dir).map_err(failed)?;
    if !fs_err::exists(&secret_file).map_err(failed)? {
        let secret = random::secret().map_err(failed)?;
        file::write_atomic(&secret_file, format!("{secret}\n").as_bytes()).map_err(failed)?;
    }
    let skills = write_skills().map_err(failed)?;
    file::write_atomic(&target, text.as_bytes()).map_err(failed)?;
    Ok(InitReport {
        file: target,
        secret_file,
        added: None,
        skills,
        endpoint: "/hooks/home",
        forges: FORGES,
    })
}

/// Adds the repository of the current directory to a file that does not have it. Returns its name; none if there is
/// nothing to add, or the file cannot be read.
fn add_repository(file: &Path) -> Result<Option<String>, Problem> {
    let failed = |error: io::Error| {
        let hint = Hint::step("make the file writable for you");
        Problem::new(Class::Usage, "not_written", error.to_string(), hint)
    };
    let worktree = worktree_here();
    let Some((name, worktree)) = worktree.and_then(|found| Some((found.remote.clone()?, found)))
    else {
        return Ok(None);
    };
    let text = tenure_host::read::text(file, MAX_LENGTH).map_err(failed)?;
    let Ok(known) = toml::from_str::<toml::Table>(&text) else {
        return Ok(None);
    };
    let repos = known.get("repo").and_then(toml::Value::as_table);
    if repos.is_none_or(|repos| repos.contains_key(&name) || repos.contains_key(PLACEHOLDER)) {
        return Ok(None);
    }
    let empty = toml::Table::new();
    let forges = known.get("forge").and_then(toml::Value::as_table);
    let forges = forges.unwrap_or(&empty);
    let host = worktree.host.as_deref().unwrap_or_default();
    let is_its = |forge: &toml::Value| {
        let url = forge.get("url").and_then(toml::Value::as_str);
        url.is_some_and(|url| url.split('/').nth(2) == Some(host))
    };
    let forge = match forges.len() {
        1 => forges.keys().next(),
        _ => forges
            .iter()
            .find(|(_, forge)| is_its(forge))
            .map(|(name, _)| name),
    };
    let Some(forge) = forge else {
        let message = format!(
            "{} has several forges, none with host {host}",
            file.display()
        );
        let hint = Hint::step("add a [repo] section for this repository by hand");
        return Err(Problem::new(Class::Refused, "which_forge", message, hint));
    };
    let section = format!(
        "\n[repo.{}]\nforge = {}\ndir = {}\ntrusted = false\n",
        quoted(&name),
        quoted(forge),
        quoted(&worktree.root.display().to_string())
    );
    let text = format!("{}\n{section}", text.trim_end());
    file::write_atomic(file, text.as_bytes()).map_err(failed)?;
    Ok(Some(name))
}

/// Writes the skills that the rules name, unless the user has one of that name.
fn write_skills() -> io::Result<Vec<PathBuf>> {
    let Some(dir) = settings::user_dir(&tenure_host::env::var) else {
        return Ok(Vec::new());
    };
    let skills = dir.join("skills");
    let mut written = Vec::new();
    for (name, text) in SKILLS {
        let path = skills.join(name);
        if fs_err::exists(&path)? {
            continue;
        }
        file::make_dirs(&skills)?;
        file::write_atomic(&path, text.as_bytes())?;
        written.push(path);
    }
    Ok(written)
}

/// The text of the file, with the repository of the current directory.
fn text_of_file(known: &InitValues) -> Result<String, Problem> {
    let kind = known.kind.as_deref().unwrap_or(KIND);
    let Some(forge) = tenure_forges::forge(kind) else {
        let names: Vec<&str> = FORGES.iter().map(|forge| forge.kind).collect();
        let hint = Hint::step(format!("name one of {}", names.join(", ")));
        let message = format!("there is no kind of forge {kind}");
        return Err(Problem::new(Class::Usage, "usage", message, hint));
    };
    let mut text = of_repository().replace("kind = \"forgejo\"", &format!("kind = {kind:?}"));
    let mut authors = known.authors.clone();
    if let Some((url, token_file)) = &known.api {
        let unasked = |why: String| {
            let hint = Hint::step("leave out --url and --token-file to write logins");
            Problem::new(Class::Refused, "not_asked", why, hint)
        };
        let url = url.trim_end_matches('/');
        let roots = roots::for_forge(url, None);
        let token_file = std::path::absolute(token_file).unwrap_or_else(|_| token_file.clone());
        let connection = Connection::new(forge.kind, url, token_file.clone(), roots);
        let told = |error: ApiError| unasked(error.to_string());
        let api = connection.api().map_err(told)?;
        let own = api.own_account().map_err(told)?;
        for author in &mut authors {
            let account = api.account(author).map_err(told)?;
            let id = account.and_then(|account| account.id);
            let id = id.ok_or_else(|| unasked(format!("{url} has no account {author}")))?;
            // A login can change hands.
            *author = format!("id:{id}");
        }
        let token_file = token_file.display().to_string();
        let filled = [
            ("url", url),
            ("token_file", &token_file),
            ("own_account", &own.login),
        ];
        for (name, value) in filled {
            text = filled_in(&text, name, &quoted(value));
        }
    }
    if known.api.is_some() {
        text = with_token(&text);
    }
    text.push_str(&more_rules(forge, known));
    if !authors.is_empty() {
        let list: Vec<String> = authors.iter().map(|author| quoted(author)).collect();
        let names = known.authors.join(", ");
        let line = format!("# {names}\nauthors = [{}]", list.join(", "));
        text = text.replace("authors = []", &line);
    }
    Ok(text)
}

/// Rules that use the token: they push, open pull requests and answer.
fn with_token(rules: &str) -> String {
    rules
        .replace("# reply = \"comment\"", "reply = \"comment\"")
        .replace("# push = false", "push = true")
        .replace("# open_pr = false", "open_pr = true")
}

/// The rules after the first one: behind comment signs while nobody is named who may start them.
fn more_rules(forge: &Forge, known: &InitValues) -> String {
    let mut rules = RULES.to_owned();
    if known.api.is_some() {
        rules.push_str(MERGE_RULE);
        rules = with_token(&rules);
    }
    if forge.never_sends.contains(&EventKind::PullChangesRequested) {
        rules = rules.replace("\"pr.changes_requested\"", "\"pr.review_comment\"");
    }
    if !known.authors.is_empty() {
        return rules;
    }
    let lines = rules.lines().map(|line| match line.is_empty() {
        true => "\n".to_owned(),
        false if line.starts_with('#') => format!("{line}\n"),
        false => format!("# {line}\n"),
    });
    let head = "\n# More rules. Remove the comment signs of a rule, and fill in its authors.\n";
    format!("{head}{}", lines.collect::<String>())
}

/// The text with the first key of this name that stands behind a comment sign.
fn filled_in(text: &str, name: &str, value: &str) -> String {
    let start = format!("# {name} = ");
    let line = text.lines().find(|line| line.starts_with(&start));
    line.map_or_else(
        || text.to_owned(),
        |line| text.replacen(line, &format!("{name} = {value}"), 1),
    )
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// The kind of forge that the template has.
const KIND: &str = "forgejo";

fn of_repository() -> String {
    let worktree = worktree_here();
    let remote = worktree.as_ref().and_then(|found| found.remote.clone());
    let (repo, dir) = match (remote, worktree) {
        (Some(repo), Some(worktree)) => (repo, worktree.root.display().to_string()),
        _ => (PLACEHOLDER.to_owned(), String::new()),
    };
    let kinds = tenure_forges::FORGES.iter().map(|forge| forge.kind);
    let kinds = kinds.collect::<Vec<_>>().join(", ");
    TEMPLATE
        .replace("{kinds}", &kinds)
        .replace("{repo}", &quoted(&repo))
        .replace("{dir}", &quoted(&dir))
}

/// Stands for a repository that a person must fill in.
pub(super) const PLACEHOLDER: &str = "OWNER/NAME";

const TEMPLATE: &str = r##"# What `tenure dispatch` does when a forge calls it.
# Fill in what is empty, then run `tenure dispatch check`.
#
# An agent runs as you and can read what you can, these secrets included. `wrap` below, or a user of its own
# for the dispatcher, is the boundary.

# How many runs at once.
concurrency = 4
# The rest of this part is optional, and shows what is used without it.
# Where webhooks arrive.
# listen = "127.0.0.1:7421"
# After this many runs of an item without a word from a permitted person, its jobs are parked.
# breaker = 10
# How often a forge with a token is asked what is closed, and what was never delivered.
# sweep = "10m"
# How long deliveries are kept.
# keep_deliveries = "30d"
# A directory of another user, if `wrap` makes the agent that user. Without it, places are in the state directory.
# places = "/srv/agent/places"

# A forge. Its webhook goes to http(s)://YOUR-HOST/hooks/home, where the server listens on 127.0.0.1:7421.
[forge.home]
# One of: {kinds}.
kind = "forgejo"
# What you enter as the webhook's secret. While you replace it, list the new file and the old one.
secret_files = ["home.secret"]
# Optional: lets tenure ask who may write, answer in comments, and notice what it missed. The token is of an
# account that only tenure uses; put it into a file with mode 0600.
# url = "https://git.example.org"
# token_file = "home.token"
# own_account = "bot"
# Other accounts that belong to programs: what they write counts for the breaker.
# bots = ["ci"]
# The certificates to trust instead of the system's, also by git when it fetches from this forge.
# ca_file = "ca.pem"

# A repository on that forge: its OWNER/NAME there, and a clone of it here, of which only the address is read.
[repo.{repo}]
forge = "home"
dir = {dir}
# Or its address. Without either, it is found by its name on the forge.
# url = "https://git.example.org/acme/web.git"
# Whether the repository's own settings and skills may give orders to the agent.
trusted = false
# Optional: how many runs of this repository at once.
# concurrency = 2
# Optional: a file (mode 0600) with the token that results are pushed with, instead of the forge's token.
# push_credential = "push.token"

# The first rule that matches an event starts a run.
[[rule]]
name = "implement"
# issue.opened, issue.edited, issue.labeled, issue.assigned, issue.comment, pr.opened, pr.pushed, pr.comment,
# pr.review, pr.approved, pr.changes_requested, pr.review_comment, pr.review_requested, push, ...
on = ["issue.opened", "issue.comment", "pr.comment"]
# Who may start a run: logins on the forge, such as ["alice"],
# or id:NUMBER, which stays the same person's when a login changes hands.
authors = []
# Or what they are to the repository: owner, member, collaborator, ...
# associations = ["member"]
# Optional: only in one repository; also ask for a label, an assignee, a reviewer, a branch, or a mention.
# repo = {repo}
# label = "agent"
# assignee = "bot"
# reviewer = "bot"
# branch = "fix/*"
# mention = "@bot"
agent = "claude"
# A label: each role of an agent has a conversation of its own for an item.
# role = "implementer"
# Whether each run begins a conversation that no later run continues. Its role is then the name of the skill.
# fresh = false
# The prompt: implement.md in the directory skills beside your config.toml (`tenure skill list`).
skill = "implement"
# Arguments of the agent: what it may do without being asked.
args = ["--permission-mode", "dontAsk", "--allowedTools", "Bash", "Edit", "Write"]
timeout = "45m"
# Variables of the dispatcher that the agent gets, too.
# env = ["NPM_TOKEN"]
# Whether the run also claims its item.
# exclusive = false
# How much one item may use.
# caps = { runs_per_hour = 6, usd_per_day = 10.0 }
# What is written in the forge (needs a token): "none", "reaction" or "comment".
# reply = "comment"
# What happens to a run whose item a person closes: "finish" or "stop".
# on_close = "finish"
# Whether tenure pushes the result, to a branch such as tenure/issue-6.
# push = false
# Whether a pull request is opened for what was pushed, or updated (needs push = true and a token).
# open_pr = false
# Whether the approved commit is merged after a run that is done (needs on = ["pr.approved"] and a token).
# merge = false
# With "ask", every result waits for a person. Without, only those that change what gives orders: CI files, CODEOWNERS, ...
# publish = "ask"
# Whether those are pushed like others.
# workflows = false
# Whether a later rule may match the same event, too.
# continue = false
# Needed for code that none of the authors wrote: the command that the agent runs under.
# wrap = ["bwrap", "..."]
# Where {socket} in wrap leads to, and the key that is added on the way; the agent needs no key and no network.
# model = { url = "https://api.anthropic.com", key_file = "model.key", key_header = "x-api-key" }
"##;

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;

    use super::super::raw::{RawCaps, RawForge, RawRepo, RawRule, RawTop};
    use super::*;

    /// The keys of a part of the file, as an unknown one is answered with them.
    fn keys<T: DeserializeOwned>() -> Vec<String> {
        let Err(error) = toml::from_str::<T>("no-such-key = 1") else {
            panic!("every key is accepted");
        };
        let (_, names) = error.message().split_once("expected ").unwrap();
        names
            .split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect()
    }

    /// The lines of a part of the template, those behind a comment sign too.
    fn lines_of(title: &str) -> Vec<&'static str> {
        let lines = TEMPLATE.lines().skip_while(|line| !line.starts_with(title));
        let skipped = usize::from(!title.is_empty());
        let rest = lines.skip(skipped);
        rest.take_while(|line| !line.starts_with('['))
            .map(|line| line.trim_start_matches("# "))
            .collect()
    }

    #[test]
    fn every_key_of_the_settings_is_in_the_file_that_init_writes() {
        let parts = [
            ("", keys::<RawTop>()),
            ("[forge.", keys::<RawForge>()),
            ("[repo.", keys::<RawRepo>()),
            ("[[rule]]", keys::<RawRule>()),
        ];
        for (title, keys) in parts {
            assert!(keys.len() > 3, "{title} {keys:?}");
            let lines = lines_of(title);
            for key in keys {
                let start = format!("{key} = ");
                let has = lines.iter().any(|line| line.starts_with(&start));
                assert!(has, "{title}: {start} is missing in {lines:#?}");
            }
        }
        for key in keys::<RawCaps>() {
            assert!(TEMPLATE.contains(&format!("{key} = ")), "{key}");
        }
    }

    /// What stands behind a comment sign can be used as it is.
    #[test]
    fn every_example_in_the_file_is_read() {
        let is_key = |line: &&str| {
            let key = line.trim_start_matches("# ").split(" = ").next();
            key.is_some_and(|key| key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
                && line.contains(" = ")
        };
        let lines = TEMPLATE.lines();
        let kept: Vec<&str> = lines
            .filter(|line| line.starts_with('[') || is_key(line))
            .map(|line| line.trim_start_matches("# "))
            .collect();
        let text = kept
            .join("\n")
            .replace("{repo}", "\"acme/web\"")
            .replace("{dir}", "\"/srv/web\"");
        let whole: toml::Table = toml::from_str(&text).unwrap();
        let mut top = whole.clone();
        for part in ["forge", "repo", "rule"] {
            top.remove(part);
        }
        fn read<T: DeserializeOwned>(value: toml::Value) -> T {
            value.try_into().unwrap()
        }
        let top: RawTop = read(top.into());
        let usual = RawTop::default();
        assert_eq!(
            (
                top.listen,
                top.concurrency,
                top.breaker,
                top.keep_deliveries,
                top.sweep
            ),
            (
                usual.listen,
                usual.concurrency,
                usual.breaker,
                usual.keep_deliveries,
                usual.sweep
            ),
            "what is used without it"
        );
        let _: RawForge = read(whole["forge"]["home"].clone());
        let _: RawRepo = read(whole["repo"]["acme/web"].clone());
        let rule: RawRule = read(whole["rule"][0].clone());
        assert_eq!(rule.caps.runs_per_hour, Some(6));
    }
}
