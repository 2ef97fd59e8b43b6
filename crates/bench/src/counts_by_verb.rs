//! The counts that are held: what a hook and the hot verbs may cost, in `crates/bench/counts.toml`.
//!
//! Counts repeat on every machine, so a test can hold them, unlike times. A verb fails if it needs more than its counts
//! in the file and [`MORE_PERCENT`]. A verb that is in the file and was not counted fails, and one that was counted and
//! is not in the file.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use crate::Failed;
use crate::counts::Counts;

/// How much more than its counts in the file a verb may need: another compiler makes other code.
pub const MORE_PERCENT: u64 = 5;

const HEAD: &str = "\
# What one run may cost, beside 5 %: instructions in user space as callgrind counts them, and system calls of the main
# thread. The build is the release profile. `scripts/counts` compares, `scripts/counts --write` writes this file.
";

/// Counts by the name of a verb.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountsByVerb(BTreeMap<String, Counts>);

impl CountsByVerb {
    pub fn add(&mut self, verb: &str, counts: Counts) {
        self.0.insert(verb.to_owned(), counts);
    }

    pub fn parse(text: &str) -> Result<Self, Failed> {
        let mut held = Self::default();
        for (verb, table) in text.parse::<Table>()? {
            let count = |name: &str| {
                let count = table.get(name).and_then(Value::as_integer);
                let count = count.and_then(|count| u64::try_from(count).ok());
                count.ok_or_else(|| format!("{verb} has no {name}"))
            };
            let counts = Counts {
                instructions: count("instructions")?,
                system_calls: count("system_calls")?,
            };
            held.add(&verb, counts);
        }
        Ok(held)
    }

    /// As the file has it.
    pub fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        for (verb, counts) in &self.0 {
            let (instructions, calls) = (counts.instructions, counts.system_calls);
            text.push_str(&format!(
                "\n[{verb}]\ninstructions = {instructions}\nsystem_calls = {calls}\n"
            ));
        }
        text
    }

    /// What is wrong with these counts, a line each.
    pub fn exceeded_by(&self, counted: &CountsByVerb) -> Vec<String> {
        let verbs: BTreeSet<&String> = self.0.keys().chain(counted.0.keys()).collect();
        let judge = |verb: &String| match (self.0.get(verb), counted.0.get(verb)) {
            (Some(_), None) => vec![format!("{verb} was not counted")],
            (None, _) => vec![format!("{verb} has no counts in the file")],
            (Some(held), Some(counts)) => [
                ("instructions", held.instructions, counts.instructions),
                ("system calls", held.system_calls, counts.system_calls),
            ]
            .into_iter()
            .filter(|(_, held, count)| count * 100 > held * (100 + MORE_PERCENT))
            .map(|(what, held, count)| format!("{verb}: {count} {what} instead of {held}"))
            .collect(),
        };
        verbs.into_iter().flat_map(judge).collect()
    }

    /// For people: the counts, and those in the file.
    pub fn table(&self, counted: &CountsByVerb) -> String {
        let mut text = String::new();
        for (verb, counts) in &counted.0 {
            let held = self.0.get(verb).map(Counts::shown);
            let held = held.unwrap_or_else(|| "nothing".to_owned());
            text.push_str(&format!("{verb:<12} {}; held: {held}\n", counts.shown()));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(verbs: &[(&str, u64, u64)]) -> CountsByVerb {
        let mut held = CountsByVerb::default();
        for (verb, instructions, system_calls) in verbs {
            let counts = Counts {
                instructions: *instructions,
                system_calls: *system_calls,
            };
            held.add(verb, counts);
        }
        held
    }

    #[test]
    fn the_file_is_read_as_it_was_written() {
        let some = held(&[("claim", 3_000_000, 200), ("hook", 2_000_000, 100)]);
        assert_eq!(CountsByVerb::parse(&some.text()).unwrap(), some);
        let broken = CountsByVerb::parse("[hook]\ninstructions = 7\n").unwrap_err();
        assert_eq!(broken.to_string(), "hook has no system_calls");
    }

    #[test]
    fn five_percent_more_are_held_and_six_are_not() {
        let file = held(&[("hook", 2_000_000, 100)]);
        let none: [String; 0] = [];
        assert_eq!(file.exceeded_by(&held(&[("hook", 2_100_000, 105)])), none);
        assert_eq!(file.exceeded_by(&held(&[("hook", 1, 1)])), none);
        assert_eq!(
            file.exceeded_by(&held(&[("hook", 2_120_000, 100)])),
            ["hook: 2120000 instructions instead of 2000000"]
        );
        assert_eq!(
            file.exceeded_by(&held(&[("hook", 2_000_000, 106)])),
            ["hook: 106 system calls instead of 100"]
        );
    }

    #[test]
    fn a_verb_that_vanishes_from_either_side_fails() {
        let (hook, both) = (
            held(&[("hook", 2, 1)]),
            held(&[("guard", 2, 1), ("hook", 2, 1)]),
        );
        assert_eq!(both.exceeded_by(&hook), ["guard was not counted"]);
        assert_eq!(hook.exceeded_by(&both), ["guard has no counts in the file"]);
    }
}
