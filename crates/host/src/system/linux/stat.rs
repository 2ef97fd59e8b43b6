//! What the kernel reports about one process in a single line, and how that line is parsed.
//!
//! The process chooses its own name, so the name may contain spaces, parentheses, newlines and bytes that are
//! not UTF-8. Only the last `)` ends it, because nothing after it can contain one. A truncated line yields
//! nothing instead of a wrong number.

use tenure_core::process::RunState;

use crate::system::view::Stat;

/// PF_FORKNOEXEC in the kernel's flags of a process.
const FORKED: u64 = 0x40;

/// Parses `/proc/PID/stat`; `None` if it has another form, or is truncated.
pub(super) fn parse_stat(text: &[u8]) -> Option<Stat> {
    let open = text.iter().position(|b| *b == b'(')?;
    let close = text.iter().rposition(|b| *b == b')')?;
    let comm = text.get(open + 1..close)?;
    let rest = std::str::from_utf8(text.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // Numbered as in proc(5); the first one after the name is number 3.
    let field = |number: usize| fields.get(number - 3).copied();
    // The field after the last one that is used proves that the line is complete.
    field(23)?;
    let terminal = field(7)?.parse::<i32>().ok()?;
    // -1 while the kernel is about to forget the process, and for a terminal that is none.
    let group = |number: usize| {
        let group = field(number)?.parse::<i64>().ok()?;
        Some(u32::try_from(group).unwrap_or(0))
    };
    Some(Stat {
        comm: String::from_utf8_lossy(comm).into_owned(),
        state: match field(3)? {
            "Z" | "X" | "x" => RunState::Zombie,
            "T" | "t" => RunState::Stopped,
            _ => RunState::Going,
        },
        parent: field(4)?.parse().ok()?,
        group: group(5)?,
        session: group(6)?,
        has_terminal: terminal != 0,
        // Written as a signed 32-bit number.
        terminal: u64::from(terminal.cast_unsigned()),
        foreground: group(8)?,
        forked: field(9)?.parse::<u64>().ok()? & FORKED != 0,
        threads: field(20)?.parse().ok()?,
        start: field(22)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: &str = " S 41 42 43 34816 42 4194304 1 2 3 4 5 6 7 8 20 0 7 0 123456 1000 200 18446744073709551615";

    fn named(name: &[u8]) -> Vec<u8> {
        [b"42 (".as_slice(), name, b")", REST.as_bytes()].concat()
    }

    /// Found by killing runners while other processes searched for what they had left.
    #[test]
    fn a_process_that_the_kernel_is_about_to_forget_is_read() {
        let line = b"42 (sleep) X 0 -1 -1 0 -1 4194572 0 0 0 0 0 0 0 0 20 0 0 0 123456 0 0 18446744073709551615";
        let stat = parse_stat(line).unwrap();
        let (state, threads) = (stat.state, stat.threads);
        assert_eq!((state, threads, stat.session), (RunState::Zombie, 0, 0));
        assert_eq!(stat.start, 123_456);
    }

    #[test]
    fn a_plain_line_is_read() {
        let stat = parse_stat(&named(b"sleep")).unwrap();
        let expected = Stat {
            comm: "sleep".into(),
            state: RunState::Going,
            parent: 41,
            group: 42,
            session: 43,
            has_terminal: true,
            terminal: 34816,
            foreground: 42,
            forked: false,
            threads: 7,
            start: 123_456,
        };
        assert_eq!(stat, expected);
    }

    #[test]
    fn f_l09_a_name_cannot_break_the_parser() {
        let names: [&[u8]; 8] = [
            b"two words",
            b"(sd-pam)",
            b") Z 1 1 1 0",
            b"a) b) (c",
            b"line\nline",
            b"\xff\xfe\x80",
            b"",
            b") R 1 (",
        ];
        for name in names {
            let stat = parse_stat(&named(name)).unwrap();
            assert_eq!(
                (stat.parent, stat.threads, stat.start),
                (41, 7, 123_456),
                "{name:?}"
            );
            assert_eq!(stat.state, RunState::Going, "{name:?}");
            assert_eq!(stat.comm, String::from_utf8_lossy(name));
        }
    }

    #[test]
    fn states_are_told_apart() {
        for (letter, state) in [
            ("R", RunState::Going),
            ("D", RunState::Going),
            ("I", RunState::Going),
            ("T", RunState::Stopped),
            ("t", RunState::Stopped),
            ("Z", RunState::Zombie),
            ("X", RunState::Zombie),
        ] {
            let line = format!("42 (x){}", REST.replacen('S', letter, 1));
            assert_eq!(
                parse_stat(line.as_bytes()).unwrap().state,
                state,
                "{letter}"
            );
        }
    }

    #[test]
    fn f_l08_a_line_cut_anywhere_is_refused_or_right() {
        let whole = named(b"sleep");
        let right = parse_stat(&whole).unwrap();
        for end in 0..whole.len() {
            if let Some(stat) = parse_stat(&whole[..end]) {
                assert_eq!(stat, right, "cut at {end}");
            }
        }
    }
}
