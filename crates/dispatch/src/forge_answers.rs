//! What only the forge knows: about an event before it is decided, and about a token when the file
//! is checked.

use serde::{Deserialize, Serialize};
use tenure_core::dispatch::{Decision, Facts, No, Rule, decide};
use tenure_core::forge::{ForgeEvent, Permission, Person, Pull, text};
use tenure_core::time::Timestamp;
use tenure_forges::api::{ApiError, ForgeApi};
use tenure_service::answer::Problem;

use super::config::{Checked, Config};
use super::fault::{self, ConfigFault};
use super::forge_config::ForgeConfig;

/// The result of asking a forge about an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForgeAnswers {
    /// Everything that the rules need; empty if the forge has no API.
    Answered(Answers),
    /// It did not answer, for this reason, and may have named a time.
    Unanswered {
        why: String,
        until: Option<Timestamp>,
    },
    /// It answered that what the event is about does not exist.
    Refused(String),
}

/// Asks the forge of an endpoint about an event. This takes as long as the forge does. Some time after the event
/// (`is_late`), the head of a pull request is not asked for, because it may have changed since.
pub fn ask_about(
    config: &Config,
    endpoint: &str,
    event: &ForgeEvent,
    is_late: bool,
) -> ForgeAnswers {
    let connection = config.forge(endpoint);
    let connection = connection.and_then(|forge| forge.connection.as_ref());
    let Some(connection) = connection else {
        return ForgeAnswers::Answered(Answers::default());
    };
    // From now on tenure's own account is recognised by its id. Until then, its name is enough.
    connection.ask_account();
    let asked = connection.api();
    let asked = asked.and_then(|api| ask(api.as_ref(), config, endpoint, event, is_late));
    let error = match asked {
        Ok(answers) => return ForgeAnswers::Answered(answers),
        Err(error) => error,
    };
    let why = format!("forge {endpoint} could not be asked: {error}");
    match error {
        ApiError::NotFound { .. } => ForgeAnswers::Refused(why),
        ApiError::Limited { until, .. } => ForgeAnswers::Unanswered {
            why,
            until: Some(until),
        },
        _ => ForgeAnswers::Unanswered { why, until: None },
    }
}

/// A forge's answers about an event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answers {
    pub permission: Option<Permission>,
    pub subject_permission: Option<Permission>,
    pub pull: Option<Pull>,
    /// Whether it was asked some time after the event.
    pub is_late: bool,
}

impl Answers {
    /// The answers as facts for a decision.
    pub fn facts<'a>(&'a self, own: Option<&'a Person>, triggered_before: bool) -> Facts<'a> {
        Facts {
            own,
            permission: self.permission,
            subject_permission: self.subject_permission,
            pull: self.pull.as_ref(),
            triggered_before,
        }
    }
}

/// Asks the forge only what the rules need to know about an event. Each question is asked once.
pub fn ask(
    api: &dyn ForgeApi,
    config: &Config,
    forge: &str,
    event: &ForgeEvent,
    is_late: bool,
) -> Result<Answers, ApiError> {
    let mut answers = Answers {
        is_late,
        ..Answers::default()
    };
    let is_asked = |rule: &Rule| {
        let when = &rule.when;
        let repo = when.repo.as_ref().is_none_or(|name| *name == event.repo);
        let is_meant = !when.associations.is_empty() || when.names(&event.actor);
        let is_stop = text::asks_to_stop(event.text()) || event.kind.is_unassigning();
        repo && (event.is_one_of(&when.on) || is_stop) && is_meant
    };
    let is_known = config.rules.repo(forge, &event.repo).is_some();
    if is_known && config.rules.rules.iter().any(is_asked) {
        answers.permission = Some(api.permission(&event.repo, &event.actor)?);
    }
    let facts =
        |answers: &Answers| decide(event, forge, &config.rules, &answers.facts(None, false));
    let Some(number) = pull_number(event) else {
        return Ok(answers);
    };
    let decision = facts(&answers);
    // The permission covers the head that the forge has now.
    let has_no_head = decision.runs.iter().any(|run| run.head.is_none());
    if !is_late && (has_no_head || says(&decision, "unknown_code")) {
        answers.pull = Some(api.pull(&event.repo, number)?.pull);
    }
    let author = event.subject_author.as_ref();
    if let Some(author) = author.filter(|_| says(&facts(&answers), "foreign_code")) {
        answers.subject_permission = Some(api.permission(&event.repo, author)?);
    }
    Ok(answers)
}

/// Whether a rule did not match for this reason.
fn says(decision: &Decision, kind: &str) -> bool {
    let mut all = decision
        .verdicts
        .iter()
        .filter_map(|verdict| verdict.no.as_ref());
    all.any(|no: &No| no.kind() == kind)
}

fn pull_number(event: &ForgeEvent) -> Option<u64> {
    let item = event.item.as_ref().filter(|item| item.scheme() == "pr")?;
    item.rest().rsplit_once('#')?.1.parse().ok()
}

/// Asks every forge with a configured token which account it belongs to. An unreachable forge
/// becomes a note.
pub fn check_tokens(checked: &mut Checked) -> Result<(), Problem> {
    let config = &checked.config;
    let mut faults = Vec::new();
    for forge in &config.forges {
        let Some(connection) = &forge.connection else {
            continue;
        };
        let mut wrong = |key: &str, why: String| {
            faults.push(ConfigFault {
                line: forge.line,
                key: format!("forge {}: {key}", forge.name),
                why,
            });
        };
        let own = forge
            .own_account
            .as_deref()
            .map(Person::named)
            .unwrap_or_default();
        let asked = connection.api();
        let asked = asked.and_then(|api| Ok((api.own_account()?, api)));
        match asked {
            Ok((account, api)) if Person::named(&account.login).is(&own) => {
                match may_trigger(api.as_ref(), config, forge, &account) {
                    Ok(found) => found.into_iter().for_each(|why| wrong("own_account", why)),
                    Err(error) => checked.notes.push(format!(
                        "forge {} could not be asked what its account may do: {error}",
                        forge.name
                    )),
                }
            }
            Ok((account, _)) => wrong(
                "own_account",
                format!("the token belongs to {}", account.login),
            ),
            Err(error @ ApiError::Denied { .. }) => wrong("token_file", error.to_string()),
            Err(error) => checked.notes.push(format!(
                "forge {} could not be asked whose token it is: {error}",
                forge.name
            )),
        }
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(fault::problem(&checked.config.file, faults))
    }
}

/// The rules that the account of a token could trigger, so that tenure would answer itself. Rules
/// with a mention are left out, because someone else must write the mention.
fn may_trigger(
    api: &dyn ForgeApi,
    config: &Config,
    forge: &ForgeConfig,
    account: &Person,
) -> Result<Vec<String>, ApiError> {
    let mut found = Vec::new();
    let own = config.repos.iter().filter(|repo| repo.forge == forge.name);
    for repo in own {
        let is_meant = |rule: &&Rule| {
            let named = rule.when.repo.as_ref();
            named.is_none_or(|name| *name == repo.name) && rule.when.mention.is_none()
        };
        let mut permission = None;
        for rule in config.rules.rules.iter().filter(is_meant) {
            let wanted = &rule.when.associations;
            let mut may = rule.when.names(account);
            if !may && !wanted.is_empty() {
                let asked = match permission {
                    Some(known) => known,
                    None => api.permission(&repo.name, account)?,
                };
                permission = Some(asked);
                may = asked.is_among(wanted);
            }
            if may {
                found.push(format!(
                    "{} may start rule {} in {}, and could then answer itself; set mention, or name authors",
                    account.login, rule.name, repo.name
                ));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Mutex;

    use tenure_core::dispatch::Trust;
    use tenure_core::forge::{EventKind, Thread, issue_item, pull_item};
    use tenure_core::key::Key;
    use tenure_forges::api::{CommentId, ItemNow, NewPull, OpenPull, PullNow, SentDelivery};

    use super::*;
    use tenure_app::settings::Settings;

    /// A forge that records the questions it gets.
    #[derive(Default)]
    struct Noted {
        asked: Mutex<Vec<String>>,
    }

    impl ForgeApi for Noted {
        fn own_account(&self) -> Result<Person, ApiError> {
            Ok(Person::named("bot"))
        }

        fn account(&self, login: &str) -> Result<Option<Person>, ApiError> {
            Ok(Some(Person::named(login)))
        }

        fn permission(&self, _: &str, person: &Person) -> Result<Permission, ApiError> {
            self.asked.lock().unwrap().push(person.login.clone());
            Ok(Permission::Write)
        }

        fn pull(&self, _: &str, number: u64) -> Result<PullNow, ApiError> {
            self.asked.lock().unwrap().push(format!("pull {number}"));
            Ok(PullNow {
                author: Person::named("carol"),
                is_open: true,
                pull: Pull {
                    branch: "x".into(),
                    base: "main".into(),
                    head: Some("a1".into()),
                    head_repo: Some("acme/web".into()),
                    is_fork: false,
                    is_draft: false,
                },
            })
        }

        fn thread(&self, _: &Key) -> Result<Thread, ApiError> {
            Ok(Thread::default())
        }

        fn pull_of(&self, _: &str, _: &str) -> Result<Option<OpenPull>, ApiError> {
            Ok(None)
        }

        fn open_pull(&self, _: &str, pull: &NewPull<'_>) -> Result<OpenPull, ApiError> {
            Ok(OpenPull {
                number: 1,
                body: pull.body.to_owned(),
                url: String::new(),
            })
        }

        fn edit_pull(&self, _: &str, _: u64, _: &str, _: &str) -> Result<(), ApiError> {
            Ok(())
        }

        fn merge_pull(&self, _: &str, _: u64, _: &str) -> Result<(), ApiError> {
            Ok(())
        }

        fn open_items(&self, _: &str) -> Result<Vec<Key>, ApiError> {
            Ok(Vec::new())
        }

        fn has_branch(&self, _: &str, _: &str) -> Result<bool, ApiError> {
            Ok(true)
        }

        fn comment(&self, _: &Key, _: &str) -> Result<CommentId, ApiError> {
            Ok(CommentId(1))
        }

        fn edit_comment(&self, _: &Key, _: &CommentId, _: &str) -> Result<(), ApiError> {
            Ok(())
        }

        fn react(&self, _: &Key, _: Option<&CommentId>) -> Result<(), ApiError> {
            Ok(())
        }

        fn find_comment(
            &self,
            _: &Key,
            _: &Person,
            _: &str,
        ) -> Result<Option<CommentId>, ApiError> {
            Ok(None)
        }

        fn state(&self, _: &Key) -> Result<ItemNow, ApiError> {
            Ok(ItemNow::Open)
        }

        fn deliveries(
            &self,
            _: &str,
            _: &str,
            _: &str,
        ) -> Result<Option<Vec<SentDelivery>>, ApiError> {
            Ok(None)
        }

        fn redeliver(&self, _: &str, _: &SentDelivery) -> Result<(), ApiError> {
            Ok(())
        }
    }

    fn config(dir: &Path) -> Config {
        fs_err::write(dir.join("s"), "x").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs_err::set_permissions(dir.join("s"), mode).unwrap();
        fs_err::create_dir_all(dir.join("skills")).unwrap();
        fs_err::write(dir.join("skills/fix.md"), "Fix it").unwrap();
        let text = "[forge.home]\nkind = \"github\"\nsecret_files = [\"s\"]\n\
            [repo.\"acme/web\"]\nforge = \"home\"\n\
            [[rule]]\non = [\"issue.comment\", \"pr.comment\"]\nauthors = [\"alice\"]\n\
            associations = [\"collaborator\"]\nagent = \"claude\"\nskill = \"fix\"\n";
        let checked = Config::parse(
            &dir.join("dispatch.toml"),
            text,
            &Settings::default(),
            Some(dir),
        );
        checked.unwrap().config
    }

    fn comment(kind: EventKind, by: &str) -> ForgeEvent {
        let mut event = ForgeEvent::new(kind, "acme/web");
        event.item = Some(match kind {
            EventKind::PullComment => pull_item("acme/web", 9).unwrap(),
            _ => issue_item("acme/web", 6).unwrap(),
        });
        event.actor = Person::named(by);
        event.text_author = Some(event.actor.clone());
        event.subject_author = Some(Person::named("carol"));
        event
    }

    #[test]
    fn only_what_a_rule_needs_is_asked_and_only_once() {
        let dir = tempfile::tempdir().unwrap();
        let config = config(dir.path());
        for (event, expected) in [
            (comment(EventKind::IssueComment, "alice"), vec!["alice"]),
            (comment(EventKind::IssueComment, "bob"), vec!["bob"]),
            (comment(EventKind::IssueOpened, "bob"), vec![]),
            (
                comment(EventKind::PullComment, "alice"),
                vec!["alice", "pull 9", "carol"],
            ),
            (
                comment(EventKind::PullComment, "bob"),
                vec!["bob", "pull 9", "carol"],
            ),
        ] {
            let noted = Noted::default();
            let answers = ask(&noted, &config, "home", &event, false).unwrap();
            assert_eq!(noted.asked.into_inner().unwrap(), expected);
            let decision = decide(&event, "home", &config.rules, &answers.facts(None, false));
            let is_on = event.kind != EventKind::IssueOpened;
            assert_eq!(decision.runs.len(), usize::from(is_on));
            assert!(
                decision
                    .runs
                    .iter()
                    .all(|run| run.trust == Trust::Permitted)
            );
        }
        let mut elsewhere = comment(EventKind::IssueComment, "bob");
        elsewhere.repo = "other/web".into();
        let noted = Noted::default();
        ask(&noted, &config, "home", &elsewhere, false).unwrap();
        assert_eq!(
            noted.asked.into_inner().unwrap(),
            [""; 0],
            "not a repository of ours"
        );
    }
}
