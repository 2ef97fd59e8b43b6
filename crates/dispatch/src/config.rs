//! The complete, checked configuration.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenure_core::dispatch::{Reply, Repo, Rules, unreachable};
use tenure_core::forge::Person;
use tenure_host::read;
use tenure_service::answer::{Class, Hint, Problem};

use super::document::{Document, Section};
use super::fault::{self, ConfigFault};
use super::forge_config::{ForgeConfig, RepoCheckout, RepoConfig};
use super::raw::{RawRule, RawTop};
use super::reading::Reading;
use super::rules;
use tenure_app::private_file::{self, SettingsFault};
use tenure_app::settings::{Settings, user_dir};

const DEFAULT_SWEEP: Duration = Duration::from_secs(600);
/// The longest dispatch.toml, in bytes.
const MAX_LENGTH: u64 = 1 << 20;

#[derive(Debug, Clone)]
pub struct Config {
    pub file: PathBuf,
    pub listen: SocketAddr,
    /// How many runs may be live at once, in total.
    pub concurrency: u32,
    /// After this many runs of an item, only a person lets it continue.
    pub breaker: u32,
    pub keep_deliveries: Duration,
    /// How often forges are asked about what webhooks did not report.
    pub sweep: Duration,
    /// A directory of the user of the wraps, for their places.
    pub places: Option<PathBuf>,
    pub forges: Vec<ForgeConfig>,
    pub repos: Vec<RepoConfig>,
    pub rules: Rules,
    /// The lines of the rules' wraps, in their order.
    pub wrap_lines: Vec<usize>,
}

/// A valid configuration, and notes for its reader.
#[derive(Debug, Clone)]
pub struct Checked {
    pub config: Config,
    pub notes: Vec<String>,
}

impl Config {
    /// Reads and checks a file; the error lists every fault.
    pub fn load(file: &Path, settings: &Settings) -> Result<Checked, Problem> {
        let own = private_file::settings_text(file, MAX_LENGTH).map_err(|fault| {
            if matches!(&fault, SettingsFault::Io(error) if read::is_absent(error)) {
                let message = format!("there is no {}", file.display());
                let hint = Hint::run("dispatch", ["init"], "to write a first one");
                return Problem::new(Class::NotFound, "no_dispatch_config", message, hint);
            }
            let step = fault.step(file);
            let step = step.unwrap_or_else(|| {
                "make the file readable, then run the same command again".to_owned()
            });
            let message = match fault {
                SettingsFault::Io(error) => error.to_string(),
                fault => format!("{}: {fault}", file.display()),
            };
            Problem::new(Class::Usage, "config", message, Hint::step(step))
        })?;
        let user = user_dir(&tenure_host::env::var);
        Self::parse(file, &own.text, settings, user.as_deref())
            .map_err(|faults| fault::problem(file, faults))
    }

    /// The same for the text of this file; `user` is the directory of the user's settings.
    pub fn parse(
        file: &Path,
        text: &str,
        settings: &Settings,
        user: Option<&Path>,
    ) -> Result<Checked, Vec<ConfigFault>> {
        let mut reading = Reading {
            dir: file.parent().unwrap_or(Path::new("")),
            settings,
            user,
            faults: Vec::new(),
            notes: Vec::new(),
        };
        let config = reading.whole(file, text);
        match config.filter(|_| reading.faults.is_empty()) {
            Some(config) => Ok(Checked {
                config,
                notes: reading.notes,
            }),
            None => {
                reading.faults.sort_by_key(|fault| fault.line);
                Err(reading.faults)
            }
        }
    }

    /// Every file with a secret that the file names, and the file itself.
    pub fn secret_files(&self) -> Vec<PathBuf> {
        let mut all = vec![self.file.clone()];
        for forge in &self.forges {
            all.extend(forge.secret_files.iter().cloned());
            all.extend(forge.token_file.clone());
        }
        all.extend(
            self.repos
                .iter()
                .filter_map(|repo| repo.push_credential.clone()),
        );
        let models = self.rules.rules.iter();
        let models = models.filter_map(|rule| rule.action.model.as_ref()?.key_file.clone());
        all.extend(models.map(PathBuf::from));
        let whole = |file: &PathBuf| std::path::absolute(file).unwrap_or_else(|_| file.clone());
        all.iter().map(whole).collect()
    }

    pub fn forge(&self, name: &str) -> Option<&ForgeConfig> {
        self.forges.iter().find(|forge| forge.name == name)
    }

    pub fn repo(&self, forge: &str, name: &str) -> Option<&RepoConfig> {
        let mut repos = self.repos.iter();
        repos.find(|repo| repo.forge == forge && repo.name == name)
    }
}

impl Reading<'_> {
    fn whole(&mut self, file: &Path, text: &str) -> Option<Config> {
        let document = Document::parse(text, &mut self.faults)?;
        let top: RawTop = document.top.read(&mut self.faults).unwrap_or_default();
        let mut forges = Vec::new();
        for (name, section) in &document.forges {
            forges.extend(self.forge(name, section));
        }
        let mut repos = Vec::new();
        for (name, section) in &document.repos {
            let Some(known) = self.repo(name, section, &document, &forges) else {
                continue;
            };
            let is_same = |other: &RepoCheckout| other.end.name == known.end.name;
            if repos.iter().any(is_same) {
                let why = format!("{} has a section already", known.end.name);
                self.faults.push(section.fault("", why));
            }
            repos.push(known);
        }
        let mut found = Vec::new();
        for (place, section) in document.rules.iter().enumerate() {
            let Some(raw) = section.read::<RawRule>(&mut self.faults) else {
                continue;
            };
            if let Some(rule) = rules::rule(self, section, place, &raw, &repos) {
                found.push((place, rule));
            }
        }
        let is_named = self.faults.iter().any(|fault| fault.key == "rule");
        if document.rules.is_empty() && !is_named {
            self.faults
                .push(document.top.fault("rule", "there is no [[rule]]"));
        }
        self.names_are_unique(&document, &found);
        let rules = Rules {
            repos: repos
                .iter()
                .map(|known| of_rules(&known.end, &forges))
                .collect(),
            rules: found.iter().map(|(_, rule)| rule.clone()).collect(),
        };
        self.rules_match(&document, &rules, &found, &forges);
        if rules.rules.iter().any(|rule| rule.action.wrap.is_empty()) {
            // First, because everything else depends on it.
            self.notes.insert(0, BOUNDARY.to_owned());
        }
        let strange = repos.iter().filter(|known| !known.end.trusted);
        self.notes.extend(strange.map(|known| {
            let name = &known.end.name;
            format!(
                "{name} is not trusted, so its own settings, CLAUDE.md and AGENTS.md are not read"
            )
        }));
        self.code_is_reached(&document, &repos, &forges, &found);
        Some(Config {
            file: file.to_owned(),
            listen: self.listen(&document.top, &top),
            concurrency: self.at_least_one(&document.top, "concurrency", top.concurrency),
            breaker: self.at_least_one(&document.top, "breaker", top.breaker),
            keep_deliveries: self
                .span(&document.top, "keep_deliveries", &top.keep_deliveries)
                .unwrap_or_default(),
            sweep: self.sweep(&document.top, &top.sweep),
            places: top.places.as_deref().map(|dir| self.path(dir)),
            forges,
            repos: repos.into_iter().map(|known| known.end).collect(),
            wrap_lines: found
                .iter()
                .map(|(place, _)| document.rules[*place].line("wrap"))
                .collect(),
            rules,
        })
    }

    fn sweep(&mut self, section: &Section<'_>, text: &str) -> Duration {
        let span = self.span(section, "sweep", text).unwrap_or(DEFAULT_SWEEP);
        if span.is_zero() {
            let why = "it must be more than 0";
            self.faults.push(section.fault("sweep", why));
        }
        span
    }

    fn listen(&mut self, section: &Section<'_>, top: &RawTop) -> SocketAddr {
        top.listen.parse().unwrap_or_else(|_| {
            let why = "expected an address and a port, such as 127.0.0.1:7421";
            self.faults.push(section.fault("listen", why));
            SocketAddr::from(([127, 0, 0, 1], 7421))
        })
    }

    fn names_are_unique(&mut self, document: &Document<'_>, found: &[rules::PlacedRule]) {
        for (at, (place, rule)) in found.iter().enumerate() {
            if found[..at].iter().any(|(_, other)| other.name == rule.name) {
                let why = format!("another rule is also called {}", rule.name);
                self.faults.push(document.rules[*place].fault("name", why));
            }
        }
    }

    /// Finds faults that show only when all rules, repositories and forges are known.
    fn rules_match(
        &mut self,
        document: &Document<'_>,
        rules: &Rules,
        found: &[rules::PlacedRule],
        forges: &[ForgeConfig],
    ) {
        for (at, never) in unreachable(rules) {
            let section = &document.rules[found[at].0];
            let why = format!("this rule never matches, because {never}");
            self.faults.push(section.fault(never.key(), why));
        }
        for (place, rule) in found {
            let section = &document.rules[*place];
            let is_meant = |repo: &&Repo| {
                rule.when
                    .repo
                    .as_ref()
                    .is_none_or(|name| *name == repo.name)
            };
            for repo in rules.repos.iter().filter(is_meant) {
                let Some(forge) = forges.iter().find(|forge| forge.name == repo.forge) else {
                    continue;
                };
                if rule.action.reply != Reply::Nothing && !forge.has_api() {
                    let why = format!("forge {} needs url and token_file for it", forge.name);
                    self.faults.push(section.fault("reply", why));
                }
                let own = forge.own_account.as_deref().map(Person::named);
                if rule.when.mention.is_none() && own.is_some_and(|own| rule.when.names(&own)) {
                    let why = "it names the account of the token, which could then answer itself; remove it, or set mention";
                    self.faults.push(section.fault("authors", why));
                }
            }
        }
    }
}

const BOUNDARY: &str = "an agent without wrap runs as this user and can read everything that this user can, \
                        the secrets of this file included; wrap, or a user of its own, is the boundary";

/// A repository as the rules see it.
fn of_rules(end: &RepoConfig, forges: &[ForgeConfig]) -> Repo {
    let forge = forges.iter().find(|forge| forge.name == end.forge);
    Repo {
        name: end.name.clone(),
        forge: end.forge.clone(),
        tells_associations: forge
            .is_none_or(|forge| forge.row.tells_associations || forge.has_api()),
        never_sends: forge
            .map(|forge| forge.row.never_sends.to_vec())
            .unwrap_or_default(),
        own_account: forge.and_then(|forge| forge.own_account.clone()),
        bots: forge.map(|forge| forge.bots.clone()).unwrap_or_default(),
    }
}
