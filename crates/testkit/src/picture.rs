//! The picture in the README: the output of `tenure demo`, as a terminal that is the same in every
//! run.
//!
//! The demo is a race between real processes, so names, numbers and times differ each time, and so
//! does the winner. In the picture the winner is always `claude`, the next to claim is always
//! `codex`, and handles, pids, times and the directory are replaced. Everything else is shown as it
//! was printed.

/// The three agents by their part in the story, each with the handle shown for it, and the pids shown in their order.
const CAST: [(&str, &str, &str); 3] = [
    ("claude", "claude-k7qd", "20140"),
    ("codex", "codex-58wg", "20219"),
    ("gemini", "gemini-nwjs", "20252"),
];

/// Its path from the directory of a crate.
pub const FILE: &str = "../../docs/demo.svg";

/// The chapter of the race.
const RACE: usize = 3;

/// The line that shows the winner.
const WON: &str = " holds issue:acme/web#42 (epoch 1)";

/// Draws what the demo printed.
pub fn of_demo(printed: &str) -> String {
    draw("tenure demo", &settled(printed))
}

/// Draws the screen of `tenure top`.
pub fn of_top(lines: &[String]) -> String {
    draw("tenure top", lines)
}

/// What the demo printed, as the same lines for every run.
pub fn settled(printed: &str) -> Vec<String> {
    let lines: Vec<&str> = printed.trim_end().lines().collect();
    let winner = lines.iter().find_map(|line| line.trim().strip_suffix(WON));
    let winner = winner.expect("somebody wins the race").to_owned();
    // By part: the winner, then the others in the order in which they registered.
    let mut parts = vec![winner];
    for (name, _, _) in CAST {
        if !parts.iter().any(|known| known == name) {
            parts.push(name.to_owned());
        }
    }
    // Before the race everyone plays itself.
    let own: Vec<String> = CAST.iter().map(|(name, _, _)| (*name).to_owned()).collect();
    let pids = pids(&lines);
    let mut chapter = 0;
    let mut text: Vec<String> = Vec::new();
    for line in lines {
        if line.is_empty() {
            chapter += 1;
        }
        let parts = if chapter < RACE { &own } else { &parts };
        let words = line.split(' ').map(|word| replaced(word, parts, &pids));
        let line = words.collect::<Vec<_>>().join(" ");
        text.push(timed(&line, chapter));
    }
    // The race is listed in order of the names.
    for block in text.split_mut(String::is_empty).skip(RACE).take(1) {
        let from = block.iter().position(|line| line.starts_with("  "));
        block[from.unwrap_or(0)..].sort();
    }
    text
}

/// The pids, in the order in which they appear.
fn pids<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let mut found = Vec::new();
    for line in lines {
        for (_, after) in line
            .match_indices("pid ")
            .map(|(at, word)| (word, &line[at + word.len()..]))
        {
            let end = after.find(|c: char| !c.is_ascii_digit());
            let pid = &after[..end.unwrap_or(after.len())];
            if !pid.is_empty() && !found.contains(&pid) {
                found.push(pid);
            }
        }
    }
    found
}

/// A word with the parts that differ between runs replaced; punctuation around it stays.
fn replaced(word: &str, parts: &[String], pids: &[&str]) -> String {
    if word.contains("/tenure-demo-") {
        let end = word.find([',', ')']).map_or("", |at| &word[at..]);
        return format!("/tmp/tenure-demo{end}");
    }
    let core = word.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let in_place = |new: &str| word.replacen(core, new, 1);
    for (part, name) in parts.iter().enumerate() {
        let (known_as, handle, _) = CAST[part];
        if core == name {
            return in_place(known_as);
        }
        if core
            .strip_prefix(name.as_str())
            .is_some_and(|rest| rest.starts_with('-'))
        {
            return in_place(handle);
        }
    }
    if let Some(at) = pids.iter().position(|pid| *pid == core) {
        return in_place(CAST[at].2);
    }
    word.to_owned()
}

/// Replaces the `42ms` in `(live in DIR, 42ms)` with the same time in every picture.
fn timed(line: &str, chapter: usize) -> String {
    let line = line.replace("has exited", "is gone");
    let Some((before, after)) = line.rsplit_once(", ") else {
        return line;
    };
    if after.ends_with(" ago") {
        return format!("{before}, 1s ago");
    }
    let span = after.strip_suffix(')').unwrap_or_default();
    let digits = span.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let is_span = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
    match (is_span, chapter) {
        (false, _) => line,
        (true, RACE) => format!("{before}, 40ms)"),
        (true, _) => format!("{before}, 1s)"),
    }
}

const LETTER: usize = 8;
const LINE: usize = 19;
const MARGIN: usize = 18;
const TOP: usize = 44;

fn draw(command: &str, lines: &[String]) -> String {
    let longest = lines.iter().map(|line| line.chars().count()).max();
    let width = longest.unwrap_or(0) * LETTER + 2 * MARGIN;
    let height = TOP + (lines.len() + 2) * LINE;
    let mut svg = String::new();
    let mut put = |text: String| {
        svg.push_str(&format!("{text}\n"));
    };
    put(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{command}\">"
    ));
    put(
        "<style>text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d6dbe1;\
         white-space:pre}.c{fill:#8ec7ff;font-weight:bold}.g{fill:#8fd694}.r{fill:#f2a6a0}</style>"
            .to_owned(),
    );
    put(format!(
        "<rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#14181d\"/>"
    ));
    for (place, colour) in ["#ff5f57", "#febc2e", "#28c840"].iter().enumerate() {
        let at = MARGIN + 4 + place * 18;
        put(format!(
            "<circle cx=\"{at}\" cy=\"18\" r=\"5\" fill=\"{colour}\"/>"
        ));
    }
    let prompt = [format!("$ {command}")];
    for (place, line) in prompt.iter().chain(lines).enumerate() {
        if line.is_empty() {
            continue;
        }
        let (class, at) = (class_of(line), TOP + (place + 1) * LINE - 6);
        let line = escaped(line);
        put(format!(
            "<text x=\"{MARGIN}\" y=\"{at}\"{class} xml:space=\"preserve\">{line}</text>"
        ));
    }
    put("</svg>".to_owned());
    svg
}

/// Chapter titles, grants and refusals are highlighted.
fn class_of(line: &str) -> &'static str {
    if line.starts_with('$') {
        return "";
    }
    if !line.starts_with("  ") {
        " class=\"c\""
    } else if line.contains("refused") {
        " class=\"r\""
    } else if line.contains(" holds ") && line.contains("(epoch") && !line.contains("told") {
        " class=\"g\""
    } else {
        ""
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(winner: usize, pid: u32, dir: &str, span: &str) -> String {
        let names = ["claude", "codex", "gemini"];
        let handle = |at: usize| format!("{}-x{at}zz", names[at]);
        let mut text = String::new();
        text += "\nps\n  codex-x1zz: busy\n\nkilled\n  codex-x1zz was cut off\n";
        text += "\nthree agents claim one item\n";
        for (at, name) in names.iter().enumerate() {
            text += &if at == winner {
                format!("  {name}{WON}\n")
            } else {
                format!(
                    "  {name} is refused: issue:acme/web#42 is held by {} (live in {dir}, {span})\n",
                    handle(winner)
                )
            };
        }
        let heir = usize::from(winner == 0);
        let gone = pid + u32::try_from(winner).unwrap();
        text += &format!("\nkilled\n  {} holds it (epoch 2)\n", names[heir]);
        text + &format!("  proof: {}: pid {gone} is gone\n", handle(winner))
    }

    #[test]
    fn the_picture_does_not_depend_on_the_winner() {
        let first = of_demo(&run(0, 100, "/tmp/tenure-demo-Ab1", "12ms"));
        for (winner, pid) in [(1, 2000), (2, 31)] {
            let other = run(winner, pid, "/var/x/tenure-demo-Zz9", "2s");
            assert_eq!(of_demo(&other), first);
        }
        assert!(first.contains("codex-58wg was cut off"), "{first}");
        assert!(first.contains("claude-k7qd: pid 20140 is gone"), "{first}");
        assert!(
            first.contains("proof: claude-k7qd: pid 20140 is gone"),
            "{first}"
        );
        assert!(
            first.contains("(live in /tmp/tenure-demo, 40ms)"),
            "{first}"
        );
    }

    #[test]
    fn another_text_is_another_picture() {
        let one = run(0, 100, "/tmp/tenure-demo-Ab1", "12ms");
        assert_ne!(of_demo(&one), of_demo(&one.replace("proof", "evidence")));
    }
}
