//! Names of missions, participants and their work. A value that exists is well formed.

use std::fmt;

use crate::id::{Malformed, stored_enum, text_id};
use crate::visible::is_invisible;

text_id! {
    /// Identifies a mission. It can be part of a path and never leaves its directory.
    MissionId
}

impl MissionId {
    /// Parses `[A-Za-z0-9][A-Za-z0-9._-]{0,127}`.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        let begins_well = text
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_alphanumeric());
        if begins_well && text.len() <= 128 && text.bytes().all(plain) {
            return Ok(Self(text.to_owned()));
        }
        Err(Malformed::new(
            "mission id",
            text,
            "expected a letter or digit, then at most 127 of A-Z, a-z, 0-9, . _ and -",
        ))
    }
}

text_id! {
    /// Identifies a participant of a mission: a ULID.
    ParticipantId
}

/// The digits of a ULID: no I, L, O and U.
const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

impl ParticipantId {
    /// Creates an id from the store's time and 10 random bytes.
    pub fn mint(wall_millis: i64, random: [u8; 10]) -> Self {
        let millis = u64::try_from(wall_millis).unwrap_or(0) & 0xFFFF_FFFF_FFFF;
        let mut bytes = [0; 16];
        bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
        bytes[6..].copy_from_slice(&random);
        let number = u128::from_be_bytes(bytes);
        let digit = |place: u32| {
            let value = (number >> (5 * place)) & 31;
            char::from(CROCKFORD[usize::try_from(value).unwrap_or(0)])
        };
        Self((0..26).rev().map(digit).collect())
    }

    /// Parses 26 digits whose value fits 128 bits.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let bad = |why: &str| Err(Malformed::new("participant id", text, why));
        if text.len() != 26 {
            return bad("a ULID has 26 characters");
        }
        if let Some(odd) = text
            .chars()
            .find(|c| !c.is_ascii() || !CROCKFORD.contains(&(*c as u8)))
        {
            return bad(&format!(
                "{odd:?} is not a ULID character (0-9 and A-Z without I, L, O and U)"
            ));
        }
        if text.as_bytes()[0] > b'7' {
            return bad("it is above 7ZZZZZZZZZZZZZZZZZZZZZZZZZ, the highest ULID");
        }
        Ok(Self(text.to_owned()))
    }
}

text_id! {
    /// A participant's role in a mission: a label, such as `developer`.
    Role
}

impl Role {
    /// Parses 1 to 64 bytes of printable text that does not begin or end with a space.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let bad = |why: &str| Err(Malformed::new("role", text, why));
        if text.trim().is_empty() {
            return bad("it is blank");
        }
        if text.len() > 64 {
            return bad("it is longer than 64 bytes");
        }
        let unseen = |c: char| c.is_control() || is_invisible(c);
        if text.trim() != text || text.chars().any(unseen) {
            return bad("expected printable text that does not begin or end with a space");
        }
        Ok(Self(text.to_owned()))
    }

    /// Whether the settings allow it; an empty list allows every role.
    pub fn is_listed(&self, roles: &[String]) -> bool {
        roles.is_empty() || roles.contains(&self.0)
    }
}

text_id! {
    /// The run of a mission in another system.
    MissionRunId
}

impl MissionRunId {
    /// Parses 1 to 256 printable characters without spaces.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        if is_one_word(text, 256) {
            return Ok(Self(text.to_owned()));
        }
        let why = "expected 1 to 256 printable characters without spaces";
        Err(Malformed::new("run id", text, why))
    }
}

text_id! {
    /// The address of another system's API.
    ApiUrl
}

impl ApiUrl {
    /// Parses `http://` or `https://` and the rest of an address, without a password.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let schemes = ["https://", "http://"];
        let rest = schemes.iter().find_map(|scheme| text.strip_prefix(scheme));
        let server = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
        match server {
            Some(server) if server.contains('@') => {
                // The value may be a secret, so it is not repeated.
                let why = "it contains a user name or password; store a secret with `tenure mission set token -`";
                Err(Malformed::new("API URL", "", why))
            }
            Some(server) if !server.is_empty() && is_one_word(text, 2048) => {
                Ok(Self(text.to_owned()))
            }
            _ => Err(Malformed::new(
                "API URL",
                text,
                "expected an address such as https://api.example.com",
            )),
        }
    }
}

fn is_one_word(text: &str, most: usize) -> bool {
    let unseen = |c: char| c.is_control() || c.is_whitespace() || is_invisible(c);
    !text.is_empty() && text.len() <= most && !text.chars().any(unseen)
}

/// What a participant works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Focus {
    WorkPackage(String),
    /// A step of the mission.
    Step(String),
}

impl Focus {
    /// Parses `wp:<id>` or `step:<id>`; `none` means no focus.
    pub fn parse(text: &str) -> Result<Option<Self>, Malformed> {
        let bad = |why: &str| Err(Malformed::new("focus", text, why));
        if text == "none" {
            return Ok(None);
        }
        let Some((kind, id)) = text.split_once(':') else {
            return bad("expected wp:<id>, step:<id> or none");
        };
        if !matches!(kind, "wp" | "step") {
            return bad("expected wp:<id>, step:<id> or none");
        }
        if id.is_empty() {
            return bad(&format!("{kind}: has no id after it"));
        }
        let plain =
            |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'/' | b'#');
        let begins_well = id.as_bytes()[0].is_ascii_alphanumeric();
        if !begins_well || id.len() > 128 || !id.bytes().all(plain) {
            return bad(
                "an id is a letter or digit, then at most 127 of A-Z, a-z, 0-9, . _ - / and #",
            );
        }
        let id = id.to_owned();
        Ok(Some(match kind {
            "wp" => Focus::WorkPackage(id),
            _ => Focus::Step(id),
        }))
    }
}

impl fmt::Display for Focus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Focus::WorkPackage(id) => write!(f, "wp:{id}"),
            Focus::Step(id) => write!(f, "step:{id}"),
        }
    }
}

stored_enum! {
    /// Whether a participant is actively working on its focus.
    #[derive(Default)]
    Drive, "drive" {
        Active = "active",
        #[default]
        Inactive = "inactive",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f_i15_a_mission_id_never_leaves_its_directory() {
        for bad in [
            "",
            "..",
            ".",
            ".hidden",
            "/etc/x",
            "a/b",
            "a\\b",
            "-x",
            "a b",
            "a\0b",
            "a\n",
            "\u{430}bc", // a Cyrillic letter that looks like an a
            "mission\u{ff11}",
            "041\u{200b}",
            &"m".repeat(129),
        ] {
            assert!(MissionId::parse(bad).is_err(), "{bad:?} was accepted");
        }
        for good in ["041-login", "M.1_x", "0", &"m".repeat(128)] {
            assert_eq!(
                MissionId::parse(good).map(|id| id.to_string()).as_deref(),
                Ok(good)
            );
        }
    }

    #[test]
    fn a_ulid_has_26_digits_without_i_l_o_u_and_fits_128_bits() {
        let good = [
            "01ARZ3NDEKTSV4RRFFQ69G5FAV",
            "00000000000000000000000000",
            "7ZZZZZZZZZZZZZZZZZZZZZZZZZ",
        ];
        for good in good {
            assert!(ParticipantId::parse(good).is_ok(), "{good:?} was refused");
        }
        let zeros = "0".repeat(25);
        let odd = ["I", "L", "O", "U", "a", "-", " "].map(|digit| format!("{zeros}{digit}"));
        let mut bad: Vec<String> = odd.to_vec();
        bad.extend(
            [
                "",
                "01ARZ3NDEKTSV4RRFFQ69G5FA",
                "8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
            ]
            .map(String::from),
        );
        bad.push("0".repeat(27));
        bad.push(format!("{}\u{e9}", "0".repeat(24)));
        for bad in bad {
            assert!(ParticipantId::parse(&bad).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn a_minted_participant_is_a_ulid_of_its_time() {
        let id = ParticipantId::mint(1_469_918_176_385, [0xFF; 10]);
        assert_eq!(id.as_str(), "01ARYZ6S41ZZZZZZZZZZZZZZZZ");
        assert_eq!(ParticipantId::parse(id.as_str()), Ok(id.clone()));
        assert!(ParticipantId::mint(1_469_918_176_386, [0; 10]) > id);
        for odd in [-1, i64::MAX] {
            let id = ParticipantId::mint(odd, [1; 10]);
            assert!(ParticipantId::parse(id.as_str()).is_ok(), "{id}");
        }
    }

    #[test]
    fn a_role_is_a_label_and_may_be_restricted() {
        for bad in ["", " ", "\t", " x", "x ", "a\nb", &"r".repeat(65)] {
            assert!(Role::parse(bad).is_err(), "{bad:?} was accepted");
        }
        let role = Role::parse("lead developer").expect("it is a label");
        assert!(role.is_listed(&[]));
        assert!(role.is_listed(&["lead developer".into()]));
        assert!(!role.is_listed(&["reviewer".into()]));
    }

    #[test]
    fn a_focus_is_a_work_package_a_step_or_none() {
        for bad in [
            "",
            "wp:",
            "step:",
            "WP01",
            "wp: x",
            "WP:1",
            "wp",
            "wp:x y",
            "wp:é",
            "issue:1",
            "wp:../x",
            "None",
            &format!("wp:{}", "x".repeat(129)),
        ] {
            assert!(Focus::parse(bad).is_err(), "{bad:?} was accepted");
        }
        assert_eq!(Focus::parse("none"), Ok(None));
        for good in ["wp:WP01", "step:42", "wp:041/WP03"] {
            let focus = Focus::parse(good).expect(good).expect(good);
            assert_eq!(focus.to_string(), good);
        }
    }

    #[test]
    fn drive_is_active_or_inactive() {
        for bad in ["", "sideways", "Active", "on"] {
            assert!(Drive::parse(bad).is_err(), "{bad:?} was accepted");
        }
        for drive in [Drive::Active, Drive::Inactive] {
            assert_eq!(Drive::parse(drive.as_str()), Ok(drive));
        }
    }
}
