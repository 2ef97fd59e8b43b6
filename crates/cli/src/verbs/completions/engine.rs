//! What may come next on a command line, by the grammar of the command line itself.
//!
//! An argument is known by the name of its value: `SESSION`, `KEY` and `MISSION` are looked up, `DIR`, `FILE`,
//! `PATH` and `CMD` are the shell's to offer. A new verb that uses these names needs nothing here. If only some
//! sessions can be meant, the argument's own name shows which: `open` or `cut_off`.

use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, Command};

/// A word that may come next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub word: String,
    pub about: String,
}

impl Candidate {
    fn new(word: impl Into<String>, about: Option<&clap::builder::StyledStr>) -> Self {
        let about = about.map(ToString::to_string).unwrap_or_default();
        Self {
            word: word.into(),
            about: about.lines().next().unwrap_or_default().to_owned(),
        }
    }
}

/// What only the store knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    Session,
    /// A session that has not ended.
    Open,
    /// A session that was cut off, and that no one dismissed.
    CutOff,
    Key,
    Mission,
    Item,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Offer {
    /// The names of files.
    Files,
    /// These words, all beginning with what was typed.
    Words(Vec<Candidate>),
}

/// Where the words before the one that is being typed lead.
struct Place<'a> {
    command: &'a Command,
    /// How many positional arguments were given.
    given: usize,
    /// The verb that is asked about, from the whole command line down.
    topic: Option<&'a Command>,
    /// The flag whose value comes next.
    flag: Option<&'a Arg>,
    /// Whether `--` was given.
    ended: bool,
}

/// What may stand for the last of these words. The grammar is built.
pub fn offer(root: &Command, words: &[String], look: &dyn Fn(Wanted) -> Vec<Candidate>) -> Offer {
    let Some((typed, before)) = words.split_last() else {
        return Offer::Words(Vec::new());
    };
    let mut place = Place {
        command: root,
        given: 0,
        topic: Some(root),
        flag: None,
        ended: false,
    };
    before.iter().for_each(|word| place.pass(word));
    let offered = place.next(typed, look);
    match offered {
        Offer::Words(mut found) => {
            found.retain(|one| one.word.starts_with(typed.as_str()));
            Offer::Words(found)
        }
        Offer::Files => Offer::Files,
    }
}

impl<'a> Place<'a> {
    fn pass(&mut self, word: &str) {
        if self.flag.take().is_some() || self.ended {
            return;
        }
        if word == "--" {
            self.ended = true;
        } else if let Some(long) = word.strip_prefix("--") {
            // With `=` it has its value.
            self.flag = self.long(long).filter(|arg| takes_value(arg));
        } else if let Some(shorts) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            self.flag = self.last_short(shorts);
        } else if let Some(verb) = self.command.find_subcommand(word) {
            (self.command, self.given) = (verb, 0);
        } else {
            self.topic = self.topic.and_then(|topic| topic.find_subcommand(word));
            self.given += 1;
        }
    }

    fn long(&self, name: &str) -> Option<&'a Arg> {
        let mut all = self.command.get_arguments();
        all.find(|arg| {
            let mut aliases = arg.get_all_aliases().into_iter().flatten();
            arg.get_long() == Some(name) || aliases.any(|alias| alias == name)
        })
    }

    /// The flag in a cluster that takes a value and has none in it.
    fn last_short(&self, cluster: &str) -> Option<&'a Arg> {
        for (at, letter) in cluster.char_indices() {
            let mut all = self.command.get_arguments();
            let arg = all.find(|arg| arg.get_short() == Some(letter))?;
            if takes_value(arg) {
                let is_last = at + letter.len_utf8() == cluster.len();
                return is_last.then_some(arg);
            }
        }
        None
    }

    fn next(&self, typed: &str, look: &dyn Fn(Wanted) -> Vec<Candidate>) -> Offer {
        if self.ended {
            return Offer::Files;
        }
        if let Some(flag) = self.flag {
            return self.values(flag, look);
        }
        let assigned = typed
            .strip_prefix("--")
            .and_then(|rest| rest.split_once('='));
        if let Some((name, _)) = assigned {
            let Some(flag) = self.long(name).filter(|arg| takes_value(arg)) else {
                return Offer::Words(Vec::new());
            };
            return match self.values(flag, look) {
                Offer::Words(found) => {
                    let whole = |one: Candidate| Candidate {
                        word: format!("--{name}={}", one.word),
                        ..one
                    };
                    Offer::Words(found.into_iter().map(whole).collect())
                }
                Offer::Files => Offer::Files,
            };
        }
        if typed.starts_with('-') {
            return Offer::Words(self.flags());
        }
        let mut found = self.verbs();
        if let Some(arg) = self.positional() {
            match self.values(arg, look) {
                Offer::Words(values) => found.extend(values),
                Offer::Files => return Offer::Files,
            }
        }
        Offer::Words(found)
    }

    /// The flags, each by its long name.
    fn flags(&self) -> Vec<Candidate> {
        let all = self.command.get_arguments();
        let shown = all.filter(|arg| !arg.is_positional() && !arg.is_hide_set());
        shown
            .filter_map(|arg| {
                Some(Candidate::new(
                    format!("--{}", arg.get_long()?),
                    arg.get_help(),
                ))
            })
            .collect()
    }

    /// The verbs that may come next. Those that `--help` leaves out can be typed, so they are offered.
    fn verbs(&self) -> Vec<Candidate> {
        if self.given > 0 {
            return Vec::new();
        }
        verbs_of(self.command)
    }

    fn positional(&self) -> Option<&'a Arg> {
        let mut all = self
            .command
            .get_positionals()
            .filter(|arg| !arg.is_last_set());
        let many = |arg: &&Arg| {
            arg.get_num_args()
                .is_some_and(|count| count.max_values() > 1)
                || matches!(arg.get_action(), ArgAction::Append)
        };
        let last = self
            .command
            .get_positionals()
            .filter(|arg| !arg.is_last_set())
            .last();
        all.nth(self.given).or_else(|| last.filter(many))
    }

    fn values(&self, arg: &Arg, look: &dyn Fn(Wanted) -> Vec<Candidate>) -> Offer {
        let possible = arg.get_possible_values();
        let words: Vec<_> = possible
            .iter()
            .filter(|value| !value.is_hide_set())
            .map(|value: &PossibleValue| Candidate::new(value.get_name(), value.get_help()))
            .collect();
        if !words.is_empty() {
            return Offer::Words(words);
        }
        let name = arg.get_value_names().and_then(|names| names.first());
        Offer::Words(match name.map_or("", |name| name.as_str()) {
            "SESSION" => look(match arg.get_id().as_str() {
                "open" => Wanted::Open,
                "cut_off" => Wanted::CutOff,
                _ => Wanted::Session,
            }),
            "KEY" | "PREFIX" => look(Wanted::Key),
            "KEY|SESSION" => {
                let mut both = look(Wanted::Key);
                both.extend(look(Wanted::Session));
                both
            }
            "MISSION" => look(Wanted::Mission),
            "ITEM" | "TARGET" => {
                let mut both = look(Wanted::Item);
                let held = look(Wanted::Key);
                let is_new = |one: &Candidate| !both.iter().any(|known| known.word == one.word);
                let held: Vec<Candidate> = held.into_iter().filter(is_new).collect();
                both.extend(held);
                both
            }
            "COMMAND" => self.topic.map_or_else(Vec::new, verbs_of),
            "DIR" | "FILE" | "PATH" | "CMD" => return Offer::Files,
            _ => Vec::new(),
        })
    }
}

fn verbs_of(command: &Command) -> Vec<Candidate> {
    let all = command.get_subcommands();
    let mut shown: Vec<_> = all
        .map(|verb| Candidate::new(verb.get_name(), verb.get_about()))
        .collect();
    shown.sort_by(|a, b| a.word.cmp(&b.word));
    shown
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

#[cfg(test)]
mod tests {
    use clap::{Arg, ArgAction, Command};

    use super::*;

    fn grammar() -> Command {
        let session = Arg::new("session").long("session").value_name("SESSION");
        let verb = Command::new("why").arg(Arg::new("key").value_name("KEY"));
        let show = Command::new("show")
            .arg(Arg::new("name").value_name("SESSION"))
            .arg(Arg::new("all").short('a').action(ArgAction::SetTrue))
            .arg(Arg::new("to").short('t').long("to").value_name("SESSION"))
            .arg(
                Arg::new("mode")
                    .long("mode")
                    .value_parser(["warn", "block"]),
            );
        let claim = Command::new("claim")
            .arg(Arg::new("keys").value_name("KEY").num_args(1..))
            .arg(Arg::new("cmd").value_name("CMD").last(true).num_args(0..));
        let mission = Command::new("mission")
            .subcommand(Command::new("join").arg(Arg::new("mission").value_name("MISSION")));
        let get = Command::new("get").arg(Arg::new("item").value_name("ITEM"));
        let some = [("goto", "open"), ("dismiss", "cut_off")]
            .map(|(verb, which)| Command::new(verb).arg(Arg::new(which).value_name("SESSION")));
        let help = Command::new("help").arg(Arg::new("topic").value_name("COMMAND").num_args(0..));
        let mut root = Command::new("tenure")
            .disable_help_flag(true)
            .disable_help_subcommand(true)
            .arg(session.global(true))
            .subcommands([verb, show, claim, mission, help, get])
            .subcommands(some);
        root.build();
        root
    }

    fn offered(line: &str) -> String {
        let look = |wanted| {
            let word = match wanted {
                Wanted::Session => "ann-1",
                Wanted::Open => "open-1",
                Wanted::CutOff => "cut-1",
                Wanted::Key => "wp:1",
                Wanted::Mission => "m1",
                Wanted::Item => "issue:a/b#1",
            };
            vec![Candidate {
                word: word.into(),
                about: String::new(),
            }]
        };
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        match offer(&grammar(), &words, &look) {
            Offer::Files => ":files".into(),
            Offer::Words(words) => {
                let words: Vec<String> = words.into_iter().map(|one| one.word).collect();
                words.join(" ")
            }
        }
    }

    #[test]
    fn what_may_come_next_follows_from_the_grammar() {
        for (typed, next) in [
            ("sh", "show"),
            ("show ", "ann-1"),
            ("show b", ""),
            ("show x ", ""),
            ("goto ", "open-1"),
            ("dismiss ", "cut-1"),
            ("help mi", "mission"),
            ("help mission ", "join"),
            ("help mission join ", ""),
            ("help nothing ", ""),
            ("why w", "wp:1"),
            ("claim a b ", "wp:1"),
            ("claim a -- ", ":files"),
            ("mission ", "join"),
            ("mission join ", "m1"),
            ("get ", "issue:a/b#1 wp:1"),
            ("show --to ", "ann-1"),
            ("show -t ", "ann-1"),
            ("show -at ", "ann-1"),
            ("show -tx ", "ann-1"),
            ("show --to=an", "--to=ann-1"),
            ("show --mode ", "warn block"),
            ("show --m", "--mode"),
            ("--session ", "ann-1"),
            ("--session x sh", "show"),
            ("show --session ", "ann-1"),
            ("nothing ", ""),
        ] {
            assert_eq!(offered(typed), next, "{typed:?}");
        }
        assert_eq!(offered(""), "claim dismiss get goto help mission show why");
    }
}
