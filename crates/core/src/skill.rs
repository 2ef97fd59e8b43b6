//! Skills: prompt templates by name, and which of a skill's files a turn takes.
//!
//! A skill is `NAME.md`. Beside it there may be `NAME-delta.md`, for a conversation that knows the whole text
//! already, and `NAME-continue.md`, for a turn that was cut off. All files of a skill come from one place: the
//! first that has `NAME.md`. A delta of one author must not follow the whole text of another.

use std::fmt;

use crate::id::Malformed;

/// The name of a skill: letters, digits, `_` and `-`. It names files, so nothing else may be in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SkillName(String);

impl SkillName {
    pub const MAX_LENGTH: usize = 64;

    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let bad = |why: &str| Err(Malformed::new("skill", text, why));
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        if !text
            .as_bytes()
            .first()
            .is_some_and(u8::is_ascii_alphanumeric)
        {
            return bad("it must begin with a letter or a digit");
        }
        if !text.bytes().all(plain) {
            return bad("expected letters, digits, _ and -");
        }
        if text.len() > Self::MAX_LENGTH {
            return bad("it is longer than 64 characters");
        }
        let is_variant = |variant: &Variant| text.ends_with(variant.ending());
        if [Variant::Delta, Variant::Continue].iter().any(is_variant) {
            return bad(
                "-delta and -continue at the end name a variant; give the skill's own name",
            );
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The file of this variant.
    pub fn file(&self, variant: Variant) -> String {
        format!("{}{}.md", self.0, variant.ending())
    }

    /// The skill that a file of this name is the whole text of.
    pub fn of_file(file: &str) -> Option<Self> {
        Self::parse(file.strip_suffix(".md")?).ok()
    }
}

impl fmt::Display for SkillName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for SkillName {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        Self::parse(text)
    }
}

/// One file of a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// The whole text.
    Full,
    /// For a conversation that has the whole text.
    Delta,
    /// For a turn that was cut off.
    Continue,
}

impl Variant {
    fn ending(self) -> &'static str {
        match self {
            Variant::Full => "",
            Variant::Delta => "-delta",
            Variant::Continue => "-continue",
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Variant::Full => "full",
            Variant::Delta => "delta",
            Variant::Continue => "continue",
        }
    }
}

/// What a skill is rendered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnKind {
    /// A conversation begins.
    Fresh,
    /// A conversation is resumed with new work.
    Resume,
    /// A turn that was cut off goes on.
    Continue,
}

/// The file that a turn takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Picked {
    pub variant: Variant,
    /// Whether the whole text stands in for a delta that does not exist.
    pub stands_in: bool,
}

/// The file that a turn takes of a skill with these variants besides the whole text. A turn that goes on
/// without a file of its own takes none: the caller has a sentence for it.
pub fn pick(turn: TurnKind, has: impl Fn(Variant) -> bool) -> Option<Picked> {
    let picked = |variant, stands_in| Some(Picked { variant, stands_in });
    match turn {
        TurnKind::Fresh => picked(Variant::Full, false),
        TurnKind::Resume if has(Variant::Delta) => picked(Variant::Delta, false),
        TurnKind::Resume => picked(Variant::Full, true),
        TurnKind::Continue if has(Variant::Continue) => picked(Variant::Continue, false),
        TurnKind::Continue => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_file_name_and_nothing_more() {
        for good in ["fix", "Fix2", "a_b-c", "0", &"x".repeat(64)] {
            assert_eq!(SkillName::parse(good).unwrap().as_str(), good);
        }
        let long = "x".repeat(65);
        for bad in [
            "",
            "-x",
            "_x",
            ".x",
            "a/b",
            "../x",
            "a.md",
            "a b",
            "ä",
            "a\n",
            "a\0",
            "fix-delta",
            "fix-continue",
            &long,
        ] {
            assert!(SkillName::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn each_turn_takes_its_file() {
        let of = |turn, there: &[Variant]| {
            pick(turn, |one| there.contains(&one)).map(|picked| (picked.variant, picked.stands_in))
        };
        let all = [Variant::Full, Variant::Delta, Variant::Continue];
        assert_eq!(of(TurnKind::Fresh, &all), Some((Variant::Full, false)));
        assert_eq!(of(TurnKind::Resume, &all), Some((Variant::Delta, false)));
        assert_eq!(of(TurnKind::Resume, &[]), Some((Variant::Full, true)));
        assert_eq!(
            of(TurnKind::Continue, &all),
            Some((Variant::Continue, false))
        );
        assert_eq!(of(TurnKind::Continue, &[Variant::Delta]), None);
    }

    #[test]
    fn files_and_names_belong_together() {
        let name = SkillName::parse("fix").unwrap();
        assert_eq!(name.file(Variant::Full), "fix.md");
        assert_eq!(name.file(Variant::Delta), "fix-delta.md");
        assert_eq!(name.file(Variant::Continue), "fix-continue.md");
        assert_eq!(SkillName::of_file("fix.md"), Some(name));
        for other in [
            "fix-delta.md",
            "fix-continue.md",
            "fix.txt",
            ".md",
            "README",
        ] {
            assert_eq!(SkillName::of_file(other), None, "{other}");
        }
    }
}
