//! Whether a delivery is genuine: secrets, digests and comparisons in constant time.
//!
//! *Invariant*: the work depends on the length of the body, never on what is wrong. A missing or
//! malformed digest is compared as zeros and then ignored; a secret that is not configured is
//! replaced by one that cannot match.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

type HmacSha256 = Hmac<Sha256>;
pub(crate) type Digest = [u8; 32];

/// How many secrets can be valid at once, so that one can replace another.
const SECRETS: usize = 2;
const STAND_IN: &[u8] = b"no secret is configured here";

/// The secret that a forge and tenure share. Never shown, never empty.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    pub fn new(bytes: impl Into<Vec<u8>>) -> Option<Self> {
        Some(Self(bytes.into())).filter(|secret| !secret.0.is_empty())
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The signature that a forge would send for this body.
    pub fn sign(&self, body: &[u8]) -> String {
        let digest = digest_of(&self.0, &[body]);
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The HMAC of these parts with a key.
pub(crate) fn digest_of(key: &[u8], parts: &[&[u8]]) -> Digest {
    keyed(key).map_or_else(Digest::default, |mut mac| {
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().into()
    })
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// HMAC accepts a key of any length, so this never fails.
fn keyed(key: &[u8]) -> Option<HmacSha256> {
    HmacSha256::new_from_slice(key).ok()
}

/// Whether one of the keys signed these parts with this digest.
pub(crate) fn is_signed(keys: &[&[u8]], parts: &[&[u8]], digest: Option<Digest>) -> bool {
    let given = digest.unwrap_or_default();
    let mut fits = false;
    for place in 0..SECRETS.max(keys.len()) {
        let (key, counts) = match keys.get(place) {
            Some(key) => (*key, !key.is_empty()),
            None => (STAND_IN, false),
        };
        let same = keyed(key).is_some_and(|mut mac| {
            parts.iter().for_each(|part| mac.update(part));
            mac.verify_slice(&given).is_ok()
        });
        fits |= same & counts;
        if fits {
            // Its sender knows the secret, and learns nothing from the time that this took.
            break;
        }
    }
    fits & digest.is_some()
}

/// Whether one of the secrets was sent in plain text. Digests are compared, so that the length of a
/// secret does not show.
pub(crate) fn is_sent(secrets: &[Secret], sent: Option<&str>) -> bool {
    let sent = sent.filter(|sent| !sent.is_empty());
    let given = digest_of(STAND_IN, &[sent.unwrap_or_default().as_bytes()]);
    let mut fits = false;
    for place in 0..SECRETS.max(secrets.len()) {
        let secret = secrets.get(place).map_or(STAND_IN, Secret::bytes);
        let same = keyed(STAND_IN).is_some_and(|mut mac| {
            mac.update(secret);
            mac.verify_slice(&given).is_ok()
        });
        fits |= same & secrets.get(place).is_some();
    }
    fits & sent.is_some()
}

/// Parses exactly 64 hexadecimal digits.
pub(crate) fn from_hex(text: &str) -> Option<Digest> {
    let bytes = text.as_bytes();
    if bytes.len() != 64 {
        return None;
    }
    let mut digest = Digest::default();
    for (place, pair) in bytes.chunks_exact(2).enumerate() {
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let value = digit(pair[0])? * 16 + digit(pair[1])?;
        digest[place] = u8::try_from(value).ok()?;
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example in GitHub's documentation of webhook signatures.
    #[test]
    fn a_signature_is_that_of_the_documentation() {
        let secret = Secret::new("It's a Secret to Everybody").unwrap();
        let signature = secret.sign(b"Hello, World!");
        assert_eq!(
            signature,
            "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
        );
        let digest = from_hex(&signature);
        assert!(is_signed(
            &[secret.bytes()],
            &[b"Hello, ", b"World!"],
            digest
        ));
        assert!(!is_signed(&[secret.bytes()], &[b"Hello, World"], digest));
        assert!(!is_signed(&[], &[b"Hello, World!"], digest));
    }

    #[test]
    fn an_empty_secret_does_not_exist_and_matches_nothing() {
        assert_eq!(Secret::new(""), None);
        let digest: Digest = {
            let mut mac = keyed(b"").unwrap();
            mac.update(b"body");
            mac.finalize().into_bytes().into()
        };
        assert!(!is_signed(&[b""], &[b"body"], Some(digest)));
        // The replacement for a missing secret is public in the source.
        let known = Secret::new(STAND_IN).unwrap();
        assert!(!is_signed(&[], &[b"body"], from_hex(&known.sign(b"body"))));
        assert!(!is_sent(&[], Some(std::str::from_utf8(STAND_IN).unwrap())));
    }

    #[test]
    fn only_a_whole_hexadecimal_digest_is_one() {
        let good = "0aF0".repeat(16);
        assert_eq!(from_hex(&good).unwrap()[..2], [0x0a, 0xf0]);
        for bad in [
            "",
            "0a",
            &good[..62],
            &format!("{good}00"),
            &"0g".repeat(32),
        ] {
            assert_eq!(from_hex(bad), None, "{bad}");
        }
        assert_eq!(from_hex(&"é".repeat(32)), None);
    }

    #[test]
    fn a_secret_is_never_shown() {
        let secret = Secret::new("hunter2").unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(…)");
    }
}
