//! Which characters a reader can see.
//!
//! Two names that differ only in invisible characters look the same. The table is Unicode's
//! Default_Ignorable_Code_Point, plus two characters that are drawn as nothing but are not in it: the braille
//! blank and the musical null notehead. It is written out because the general category does not help: U+3164 is
//! a letter, U+FE0F a mark.

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// Ranges of characters that are drawn as nothing, in order.
const INVISIBLE: &[(u32, u32)] = &[
    (0x00ad, 0x00ad),
    (0x034f, 0x034f),
    (0x061c, 0x061c),
    (0x115f, 0x1160),
    (0x17b4, 0x17b5),
    (0x180b, 0x180f),
    (0x200b, 0x200f),
    (0x202a, 0x202e),
    (0x2060, 0x206f),
    (0x2800, 0x2800),
    (0x3164, 0x3164),
    (0xfe00, 0xfe0f),
    (0xfeff, 0xfeff),
    (0xffa0, 0xffa0),
    (0xfff0, 0xfff8),
    (0x1_bca0, 0x1_bca3),
    (0x1_d159, 0x1_d159),
    (0x1_d173, 0x1_d17a),
    (0xe_0000, 0xe_0fff),
];

/// Whether a character is drawn as nothing. Excludes spaces and control characters.
pub fn is_invisible(c: char) -> bool {
    let code = u32::from(c);
    let after = INVISIBLE.partition_point(|(first, _)| *first <= code);
    after > 0 && code <= INVISIBLE[after - 1].1
}

/// Whether a character is visible, if only as a space: it neither hides nor controls the text around it.
pub fn is_shown(c: char) -> bool {
    use GeneralCategory as G;
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    let steers = matches!(
        c.general_category(),
        G::Control
            | G::Format
            | G::Surrogate
            | G::PrivateUse
            | G::Unassigned
            | G::LineSeparator
            | G::ParagraphSeparator
    );
    !steers && !is_invisible(c)
}

/// Whether a text shows anything to a reader.
pub fn has_visible(text: &str) -> bool {
    text.chars().any(is_seen)
}

/// Whether a character is visible by itself: a combining mark needs a letter.
fn is_seen(c: char) -> bool {
    use GeneralCategory as G;
    let unseen = matches!(
        c.general_category(),
        G::SpaceSeparator | G::NonspacingMark | G::SpacingMark | G::EnclosingMark
    );
    is_shown(c) && !unseen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ranges_are_in_order_and_apart() {
        assert!(INVISIBLE.windows(2).all(|pair| pair[0].1 < pair[1].0));
        assert!(INVISIBLE.iter().all(|(first, last)| first <= last));
    }

    #[test]
    fn what_cannot_be_seen_is_known() {
        for c in [
            '\u{3164}',
            '\u{fe0f}',
            '\u{fe00}',
            '\u{115f}',
            '\u{1160}',
            '\u{17b4}',
            '\u{180b}',
            '\u{180e}',
            '\u{ffa0}',
            '\u{e0100}',
            '\u{e0001}',
            '\u{34f}',
            '\u{2800}',
            '\u{200d}',
            '\u{ad}',
            '\u{feff}',
            '\u{2064}',
        ] {
            assert!(is_invisible(c), "U+{:04X}", u32::from(c));
        }
        for c in "aZ0 #/é한글가ᄀ\u{301}\u{5b0}⠁❤🎉～ー々ﾊ".chars() {
            assert!(!is_invisible(c), "{c} U+{:04X}", u32::from(c));
        }
    }
}
