//! Finding a skill and rendering it.
//!
//! Skills come from the user's directory (`skills` next to config.toml), then from `.tenure/skills`
//! of the repository, if the user's settings trust it. A repository's skills are read from its base
//! branch, by the blob that its commit names, so a branch under review, or a file that an agent
//! just wrote, cannot instruct an agent. Everything is found, read and rendered before an agent is
//! started.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;
use tenure_core::skill::{Picked, SkillName, TurnKind, Variant, pick};
use tenure_host::git::Worktree;
use tenure_host::git_command::{Belief, Blob, Git, GitError};
use tenure_host::own_repository::OwnRepository;
use tenure_host::read;
use tenure_service::answer::{Class, Hint, Problem};

use super::template::{self, MAX_TEMPLATE, TemplateFault, Variables};
use tenure_app::open::{self, Purpose};
use tenure_app::settings::repo::trust_line;
use tenure_app::settings::{self, Settings};

/// The directory of skills in a repository.
const FOLDER: &str = ".tenure/skills";

/// The sources of skills, in order. Git is asked only if the user has no such skill, and only in a
/// repository that is trusted.
#[derive(Debug)]
pub struct Skills<'a> {
    user: Option<PathBuf>,
    worktree: Option<&'a Worktree>,
    /// What the forge has, instead of a worktree.
    base: Option<OwnRepository>,
    trusts: bool,
}

#[derive(Debug)]
struct Repository {
    git: Git,
    /// The branch that others build on, and its commit.
    base: String,
    commit: String,
    files: Vec<Blob>,
}

/// One of the sources.
#[derive(Debug, Clone, Copy)]
enum SkillSource<'a> {
    User(&'a Path),
    Repository(&'a Repository),
}

/// A file of a skill, and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    pub name: SkillName,
    /// `user` or `repository`.
    pub from: &'static str,
    /// The file as shown to people.
    pub file: String,
    pub variant: Variant,
    /// Whether the whole text replaces a delta that does not exist.
    pub stands_in: bool,
    source: String,
}

/// A skill that can be rendered here.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct ListedSkill {
    pub name: String,
    pub from: &'static str,
    pub file: String,
    pub variants: Vec<&'static str>,
}

impl<'a> Skills<'a> {
    /// The skills that are available in a worktree, or outside any.
    pub fn of(settings: &Settings, worktree: Option<&'a Worktree>) -> Result<Self, Problem> {
        let user = settings::user_dir(&tenure_host::env::var);
        let trusts = settings.trusts(worktree, |name| {
            let mut context = open::open(Purpose::Read)?;
            Ok(context.service().repository_hosts(name)?.value)
        })?;
        Ok(Self::trusting(user.as_deref(), worktree, trusts))
    }

    /// The same with the directory of the user's settings, if the caller decides whether the
    /// repository is trusted.
    pub fn trusting(user: Option<&Path>, worktree: Option<&'a Worktree>, trusts: bool) -> Self {
        Self {
            user: user.map(|dir| dir.join("skills")),
            worktree,
            base: None,
            trusts,
        }
    }

    /// The same, with the repository's own skills from what the forge has.
    #[must_use]
    pub fn in_base(mut self, base: &OwnRepository) -> Self {
        self.base = Some(base.clone());
        self
    }

    fn repository(&self) -> Result<Option<Repository>, Problem> {
        if let Some(base) = self.base.as_ref().filter(|_| self.trusts) {
            return Repository::in_git(base.git());
        }
        match self.worktree.filter(|_| self.trusts) {
            Some(worktree) => Repository::of(worktree),
            None => Ok(None),
        }
    }

    /// The file of a skill for a turn; none if the turn continues and the skill has no text for
    /// that.
    pub fn find(&self, name: &SkillName, turn: TurnKind) -> Result<Option<Skill>, Problem> {
        if let Some(place) = self.user.as_deref().map(SkillSource::User)
            && place.has(name, Variant::Full)?
        {
            return place.take(name, turn);
        }
        let repository = self.repository()?;
        match &repository {
            Some(repo) if repo.blob(&name.file(Variant::Full)).is_some() => {
                SkillSource::Repository(repo).take(name, turn)
            }
            _ => Err(self.unknown(name, repository.as_ref())),
        }
    }

    /// The file of a skill for a turn that needs one.
    pub fn require(&self, name: &SkillName, turn: TurnKind) -> Result<Skill, Problem> {
        self.find(name, turn)?
            .ok_or_else(|| self.unknown(name, None))
    }

    /// All skills, by name; a skill in an earlier source hides those with the same name.
    pub fn list(&self) -> Result<Vec<ListedSkill>, Problem> {
        let repository = self.repository()?;
        let user = self.user.as_deref().map(SkillSource::User);
        let places = user
            .into_iter()
            .chain(repository.as_ref().map(SkillSource::Repository));
        let mut all: Vec<ListedSkill> = Vec::new();
        for place in places {
            for name in place.names()? {
                if all.iter().any(|known| known.name == name.as_str()) {
                    continue;
                }
                let mut variants = Vec::new();
                for variant in [Variant::Full, Variant::Delta, Variant::Continue] {
                    if place.has(&name, variant)? {
                        variants.push(variant.word());
                    }
                }
                all.push(ListedSkill {
                    from: place.word(),
                    file: place.shown(&name.file(Variant::Full)),
                    name: name.to_string(),
                    variants,
                });
            }
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    /// The error for a skill that has no file.
    fn unknown(&self, name: &SkillName, repository: Option<&Repository>) -> Problem {
        let file = name.file(Variant::Full);
        let user = self.user.as_deref().map(SkillSource::User);
        let places: Vec<String> = user
            .into_iter()
            .chain(repository.map(SkillSource::Repository))
            .map(|place| place.shown(&file))
            .collect();
        let message = if places.is_empty() {
            format!("skill {name} was not found: HOME is not set")
        } else {
            let places = places.join(", and no ");
            format!("skill {name} was not found: there is no {places}")
        };
        let list = Hint::run("skill", ["list"], "to list the skills");
        let mut problem = Problem::new(Class::NotFound, "not_found", message, list);
        if let Some(worktree) = self.worktree.filter(|_| !self.trusts) {
            let (name, line) = (worktree.repo(), trust_line(worktree));
            problem.hints.push(Hint::step(format!(
                "{name} is not trusted, so its own skills are not used; to trust it, {line}"
            )));
        }
        problem
    }
}

impl Repository {
    /// The skills in the base branch of a worktree's repository; none if it has no commit.
    fn of(worktree: &Worktree) -> Result<Option<Self>, Problem> {
        Self::in_git(Git::of_repository(&worktree.common_dir, Belief::Full))
    }

    fn in_git(git: Git) -> Result<Option<Self>, Problem> {
        let found = Self::base(&git).map_err(|error| unreadable(&error))?;
        Ok(found.map(|(base, commit, files)| Self {
            git,
            base,
            commit,
            files,
        }))
    }

    fn base(git: &Git) -> Result<Option<(String, String, Vec<Blob>)>, GitError> {
        let Some(base) = git.base()? else {
            return Ok(None);
        };
        let Some(commit) = git.commit(&base)? else {
            return Ok(None);
        };
        let files = git.files(&commit, FOLDER)?;
        Ok(Some((base, commit, files)))
    }

    fn blob(&self, file: &str) -> Option<&Blob> {
        let path = format!("{FOLDER}/{file}");
        self.files.iter().find(|blob| blob.path == path)
    }
}

impl SkillSource<'_> {
    fn word(self) -> &'static str {
        match self {
            SkillSource::User(_) => "user",
            SkillSource::Repository(_) => "repository",
        }
    }

    /// A file as shown to people.
    fn shown(self, file: &str) -> String {
        match self {
            SkillSource::User(dir) => dir.join(file).display().to_string(),
            SkillSource::Repository(repo) => {
                let branch = ["refs/remotes/", "refs/heads/"]
                    .iter()
                    .find_map(|prefix| repo.base.strip_prefix(prefix))
                    .unwrap_or(&repo.base);
                let commit = repo.commit.get(..12).unwrap_or(&repo.commit);
                format!("{FOLDER}/{file} in {branch} ({commit})")
            }
        }
    }

    fn has(self, name: &SkillName, variant: Variant) -> Result<bool, Problem> {
        let file = name.file(variant);
        match self {
            SkillSource::Repository(repo) => Ok(repo.blob(&file).is_some()),
            SkillSource::User(dir) => match read::open(&dir.join(&file)) {
                Ok(_) => Ok(true),
                Err(error) if read::is_absent(&error) => Ok(false),
                Err(error) => Err(unusable(&error.to_string())),
            },
        }
    }

    /// The file for a turn of a skill in this source.
    fn take(self, name: &SkillName, turn: TurnKind) -> Result<Option<Skill>, Problem> {
        let delta = self.has(name, Variant::Delta)?;
        let goes_on = self.has(name, Variant::Continue)?;
        let picked = pick(turn, |variant| match variant {
            Variant::Full => true,
            Variant::Delta => delta,
            Variant::Continue => goes_on,
        });
        picked.map(|picked| self.read(name, picked)).transpose()
    }

    fn names(self) -> Result<Vec<SkillName>, Problem> {
        let files: Vec<String> = match self {
            SkillSource::Repository(repo) => {
                let own = repo.files.iter();
                own.filter_map(|blob| Some(blob.path.rsplit('/').next()?.to_owned()))
                    .collect()
            }
            SkillSource::User(dir) => match fs_err::read_dir(dir) {
                Ok(entries) => entries
                    .flatten()
                    .filter_map(|entry| entry.file_name().into_string().ok())
                    .collect(),
                Err(error) if read::is_absent(&error) => Vec::new(),
                Err(error) => return Err(unusable(&error.to_string())),
            },
        };
        Ok(files
            .iter()
            .filter_map(|file| SkillName::of_file(file))
            .collect())
    }

    fn read(self, name: &SkillName, picked: Picked) -> Result<Skill, Problem> {
        let file = name.file(picked.variant);
        let source = match self {
            SkillSource::User(dir) => {
                let text = read::text(&dir.join(&file), MAX_TEMPLATE);
                text.map_err(|error: io::Error| unusable(&error.to_string()))?
            }
            SkillSource::Repository(repo) => repo.text(&file).map_err(|why| {
                let shown = self.shown(&file);
                unusable(&format!("cannot read {shown} ({why})"))
            })?,
        };
        Ok(Skill {
            name: name.clone(),
            from: self.word(),
            file: self.shown(&file),
            variant: picked.variant,
            stands_in: picked.stands_in,
            source,
        })
    }
}

impl Repository {
    fn text(&self, file: &str) -> Result<String, String> {
        let missing = || io::Error::from(io::ErrorKind::NotFound).to_string();
        let blob = self.blob(file).ok_or_else(missing)?;
        if blob.size > MAX_TEMPLATE {
            return Err(format!("it is longer than {MAX_TEMPLATE} bytes"));
        }
        let bytes = self.git.content(blob).map_err(|error| error.to_string())?;
        String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
    }
}

impl Skill {
    /// The prompt rendered with these variables.
    pub fn render(&self, variables: &Variables) -> Result<String, Problem> {
        template::render(&self.source, variables).map_err(|fault| self.faulty(&fault))
    }

    fn faulty(&self, fault: &TemplateFault) -> Problem {
        let line = fault.line.map(|line| format!(", line {line}"));
        let place = format!("{}{}", self.file, line.unwrap_or_default());
        let message = format!(
            "skill {} cannot be rendered: {} ({place})",
            self.name, fault.what
        );
        let hint = match &fault.variable {
            Some(name) => Hint::run(
                "skill",
                [
                    "render",
                    self.name.as_str(),
                    "--var",
                    &format!("{name}=TEXT"),
                ],
                "to give it a value",
            ),
            None => Hint::step("correct the file, then run the same command again"),
        };
        let mut problem = Problem::new(Class::Invalid, "skill", message, hint);
        let data = [
            ("file", json!(self.file)),
            ("line", json!(fault.line)),
            ("variable", json!(fault.variable)),
        ];
        for (name, value) in data {
            problem.data.insert(name.to_owned(), value);
        }
        problem
    }
}

fn unusable(why: &str) -> Problem {
    let hint = Hint::step("correct the file, then run the same command again");
    Problem::new(
        Class::Invalid,
        "skill",
        format!("the skill cannot be used: {why}"),
        hint,
    )
}

fn unreadable(error: &GitError) -> Problem {
    let hint = Hint::step("correct it, then run the same command again");
    let message = format!("the skills of this repository cannot be read: {error}");
    Problem::new(Class::Invalid, "skill", message, hint)
}

/// Parses `K=V`; a duplicate name is an error.
pub fn variables(typed: &[String]) -> Result<Variables, Problem> {
    let mut all = Variables::new();
    for one in typed {
        let usage = |message: String| {
            let hint = Hint::step("pass --var NAME=TEXT once per name");
            Problem::new(Class::Usage, "usage", message, hint)
        };
        let Some((name, value)) = one.split_once('=') else {
            return Err(usage(format!("--var {one} has no =")));
        };
        if !is_name(name) {
            let why = "a name is a letter or _, then letters, digits and _";
            return Err(usage(format!("--var {name} is not valid: {why}")));
        }
        if all.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(usage(format!("--var {name} was given twice")));
        }
    }
    Ok(all)
}

/// Whether a template can use it as a name; some words are reserved there.
fn is_name(text: &str) -> bool {
    const TAKEN: &[&str] = &[
        "and", "else", "false", "False", "if", "in", "is", "loop", "none", "None", "not", "or",
        "true", "True",
    ];
    let mut bytes = text.bytes();
    let begins = bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    begins && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_') && !TAKEN.contains(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_read_whole_and_once() {
        let given = |typed: &[&str]| {
            let typed: Vec<String> = typed.iter().map(|one| (*one).to_owned()).collect();
            variables(&typed)
        };
        let all = given(&["a=b=c", "_x1=", "t=line\nline"]).unwrap();
        assert_eq!((all["a"].as_str(), all["_x1"].as_str()), ("b=c", ""));
        for bad in [
            &["a"][..],
            &["=x"],
            &["1a=x"],
            &["a-b=x"],
            &["a.b=x"],
            &["a=1", "a=2"],
            &["loop=x"],
        ] {
            assert_eq!(given(bad).unwrap_err().class, Class::Usage, "{bad:?}");
        }
    }
}
