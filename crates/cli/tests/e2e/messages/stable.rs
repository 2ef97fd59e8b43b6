//! Texts that are the same in every run: names, pids, times and paths are replaced by ones that look alike.

use std::collections::BTreeMap;

use serde_json::Value;
use tenure_testkit::Env;

/// The ends of handles, in the order in which sessions were registered.
const ENDS: [&str; 16] = [
    "k7qd", "m3xa", "p4wz", "x2mn", "58wg", "nwjs", "t6rb", "z8cf", "b2yh", "q9tk", "v5de", "h3sp",
    "w7nb", "c4gx", "r6mz", "d8kf",
];
const TIME: &str = "2026-11-15T08:00:00.000Z";
/// How messages say what a time looks like.
const EXAMPLE: &str = "2026-11-15T08:00:00Z";
const UUID: &str = "5f0c7a10-3b8e-4d27-9c41-8e2b6f1d0a93";
const ULID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

/// What stands for what.
pub struct Stable {
    /// Longer texts first.
    paths: Vec<(String, String)>,
    /// Handles and pids, by id: ids grow with time.
    handles: BTreeMap<String, (String, Vec<u32>)>,
    /// The ids of runs and jobs, in their order.
    runs: Vec<String>,
    jobs: Vec<String>,
    /// Whether spans of time stay as they are.
    keeps_spans: bool,
}

/// A time of today.
fn is_clock(cell: &str) -> bool {
    let shape: String = cell
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    shape == "00:00:00"
}

impl Stable {
    pub fn new(env: &Env) -> Self {
        let dir = env.dir().display().to_string();
        let dashed = |path: &str| path.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let mut paths = vec![
            (
                env.tenure_path().display().to_string(),
                "/usr/bin/tenure".into(),
            ),
            (format!("{dir}/state"), "/home/dev/.tenure".into()),
            (format!("{dir}/home"), "/home/dev".into()),
            (format!("{dir}/work"), "/home/dev/work".into()),
            (dashed(&format!("{dir}/work")), "-home-dev-work".into()),
            (dir, "/home/dev".into()),
        ];
        paths.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        Self {
            paths,
            handles: BTreeMap::new(),
            runs: Vec::new(),
            jobs: Vec::new(),
            keeps_spans: false,
        }
    }

    /// Replaces a text wherever it is, before everything else.
    pub fn replace(&mut self, text: &str, stable: &str) {
        self.paths.insert(0, (text.to_owned(), stable.to_owned()));
    }

    pub fn keep_spans(&mut self) {
        self.keeps_spans = true;
    }

    /// Learns the sessions that there are.
    pub fn learn(&mut self, env: &Env) {
        let listed = env.tenure(&["ps", "-a", "--json"]);
        let answer: Value = serde_json::from_str(&listed.stdout).unwrap_or_default();
        for one in answer["sessions"].as_array().into_iter().flatten() {
            let text = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
            let pid = one["process"]["pid"].as_u64();
            let pid = pid.and_then(|pid| u32::try_from(pid).ok());
            let known = self.handles.entry(text("id")).or_default();
            known.0 = text("handle");
            known.1.extend(pid.filter(|pid| !known.1.contains(pid)));
        }
        learn_ids(env, &["runs", "--json"], "runs", &mut self.runs);
        learn_ids(env, &["queue", "--all", "--json"], "jobs", &mut self.jobs);
    }

    /// Each handle with the one that stands for it.
    fn renamed(&self) -> impl Iterator<Item = (&str, String, &[u32])> {
        let all = self.handles.values().enumerate();
        all.map(|(place, (handle, pids))| {
            let name = handle
                .rsplit_once('-')
                .map_or(handle.as_str(), |(name, _)| name);
            let end = ENDS[place % ENDS.len()];
            (handle.as_str(), format!("{name}-{end}"), pids.as_slice())
        })
    }

    /// Who typed something.
    pub fn caller(&self, pid: u32) -> String {
        let own = self.renamed().find(|(_, _, pids)| pids.contains(&pid));
        match own {
            Some((_, handle, _)) => format!("as {handle}"),
            None => "outside a session".to_owned(),
        }
    }

    /// A command as it was typed: its spans stay.
    pub fn typed(&self, line: &str) -> String {
        Self::by_word(&self.names(line), |word, before| {
            self.pid(word, before).unwrap_or_else(|| word.to_owned())
        })
    }

    /// An output, each line behind a mark. Columns are drawn again: their width depends on what stood in them.
    pub fn lines(&self, output: &str, mark: &str) -> String {
        let mut text = String::new();
        let mut lines = output.lines().peekable();
        while let Some(line) = lines.next() {
            let starts = columns(line);
            if starts.len() < 3 {
                text.push_str(format!("{mark}{}", self.line(line)).trim_end());
                text.push('\n');
                continue;
            }
            let mut rows = vec![cells(line, &starts)];
            while let Some(row) = lines.next_if(|line| is_row(line, &starts)) {
                rows.push(cells(row, &starts));
            }
            let rows: Vec<Vec<String>> = rows
                .iter()
                .map(|row| row.iter().map(|cell| self.cell(cell)).collect())
                .collect();
            for row in aligned(&rows) {
                text.push_str(&format!("{mark}{row}\n"));
            }
        }
        text
    }

    fn cell(&self, cell: &str) -> String {
        match cell {
            "now" => "2s".to_owned(),
            clock if is_clock(clock) => "08:00:00".to_owned(),
            cell => self.line(cell),
        }
    }

    fn names(&self, line: &str) -> String {
        let mut line = line.to_owned();
        for (path, stable) in &self.paths {
            line = line.replace(path, stable);
        }
        for (handle, stable, _) in self.renamed() {
            line = line.replace(handle, &stable);
        }
        for (place, id) in self.runs.iter().enumerate() {
            line = line.replace(id, &format!("r-{}", ENDS[place % ENDS.len()]));
        }
        for (place, id) in self.jobs.iter().enumerate() {
            line = line.replace(id, &format!("j-{}", ENDS[place % ENDS.len()]));
        }
        for (place, id) in self.handles.keys().enumerate() {
            line = line.replace(id, &format!("019a8f00-0000-7000-8000-{:012}", place + 1));
        }
        line
    }

    fn line(&self, line: &str) -> String {
        let line = match logged(line) {
            Some((cursor, rest)) => format!("{cursor}  08:00:00      {rest}"),
            None => line.to_owned(),
        };
        let line = match line.strip_suffix(", now") {
            Some(before) => format!("{before}, 2s"),
            None => line.to_owned(),
        };
        let line = self
            .names(&line)
            .replace("just now", "2s ago")
            .replace("cut off now", "cut off 2s")
            .replace("has exited", "is gone");
        Self::by_word(&line, |word, before| self.word(word, before))
    }

    /// The line with each word replaced; the word before it says what it is.
    fn by_word(line: &str, stable: impl Fn(&str, &str) -> String) -> String {
        let (mut text, mut word, mut before) = (String::new(), String::new(), String::new());
        for letter in line.chars().chain(['\n']) {
            let goes_on = !word.is_empty() && ":.".contains(letter);
            if goes_on || letter.is_ascii_alphanumeric() || "-_".contains(letter) {
                word.push(letter);
                continue;
            }
            if !word.is_empty() {
                text.push_str(&stable(&word, &before));
                before = std::mem::take(&mut word);
            }
            if letter != '\n' {
                text.push(letter);
            }
        }
        text
    }

    fn word(&self, word: &str, before: &str) -> String {
        let core = word.trim_end_matches([':', '.']);
        let rest = &word[core.len()..];
        let stable = if let Some(pid) = self.pid(core, before) {
            pid
        } else if core == EXAMPLE {
            core.to_owned()
        } else if core.len() >= 20 && core.starts_with("20") && core.ends_with('Z') {
            TIME.to_owned()
        } else if is_uuid(core) && !core.starts_with("019a8f00-") {
            UUID.to_owned()
        } else if core.len() == 26 && core.starts_with("01") && is(core, char::is_alphanumeric) {
            ULID.to_owned()
        } else if matches!(core.len(), 9 | 40) && is_hash(core) {
            "1a2b3c4d5".to_owned()
        } else if core.len() > 15 && is(core, |c| c.is_ascii_digit() || c == '.') {
            "123456.789".to_owned()
        } else if before == "tick" {
            "3750000".to_owned()
        } else if self.keeps_spans {
            core.to_owned()
        } else if is_span(core) && !before.starts_with("--") {
            "2s".to_owned()
        } else if ["7m", "8m", "9m"].contains(&core) {
            "10m".to_owned()
        } else if ["1m", "2m", "3m"].contains(&core) {
            "2s".to_owned()
        } else {
            core.to_owned()
        };
        format!("{stable}{rest}")
    }

    /// A pid stands behind a word that says so.
    fn pid(&self, word: &str, before: &str) -> Option<String> {
        let says_so =
            ["pid", "pids", "process", "adopt", "--pid", "write:", "-p"].contains(&before);
        // No process has such a pid.
        let is_made_up = word.len() >= 7 || word == "0";
        if !says_so || is_made_up || !is(word, |c| c.is_ascii_digit()) {
            return None;
        }
        let is_it = |pids: &[u32]| pids.iter().any(|pid| word == pid.to_string());
        let known = self.renamed().position(|(_, _, pids)| is_it(pids));
        Some(match known {
            Some(place) => (20100 + place).to_string(),
            None => "20999".to_owned(),
        })
    }
}

/// The cursor of a line of the log, and what follows its time, which is local and twelve columns wide.
fn logged(line: &str) -> Option<(&str, &str)> {
    let indent = line.len() - line.trim_start().len();
    let (cursor, rest) = line[indent..].split_once("  ")?;
    let time = rest.get(..12)?;
    let is_log = is(cursor, |c| c.is_ascii_digit()) && time.contains(':');
    let rest = rest.get(12..)?.strip_prefix("  ")?;
    is_log.then_some((&line[..indent + cursor.len()], rest))
}

fn is(word: &str, fits: impl Fn(char) -> bool) -> bool {
    !word.is_empty() && word.chars().all(fits)
}

fn is_uuid(word: &str) -> bool {
    word.len() == 36
        && word.matches('-').count() == 4
        && is(word, |c| c == '-' || c.is_ascii_hexdigit())
}

/// A commit, or the beginning of one.
fn is_hash(word: &str) -> bool {
    is(word, |c| c.is_ascii_digit() || ('a'..='f').contains(&c))
        && word.contains(|c: char| c.is_ascii_digit())
        && word.contains(|c: char| c.is_ascii_alphabetic())
}

/// `12ms` or `3s`.
fn is_span(word: &str) -> bool {
    let digits = word.strip_suffix("ms").or_else(|| word.strip_suffix('s'));
    digits.is_some_and(|digits| is(digits, |c| c.is_ascii_digit()))
}

/// Where the columns of a table begin, if this is its head.
fn columns(line: &str) -> Vec<usize> {
    let is_head = |c: char| c.is_ascii_uppercase() || c == ' ';
    if !is(line, is_head) || line.starts_with(' ') {
        return Vec::new();
    }
    let starts = line
        .char_indices()
        .filter(|(at, letter)| *letter != ' ' && (*at == 0 || line[..*at].ends_with("  ")));
    starts.map(|(at, _)| at).collect()
}

fn is_row(line: &str, starts: &[usize]) -> bool {
    let letters: Vec<char> = line.chars().collect();
    let has_gap = |at: &usize| {
        let before = letters.get(at.saturating_sub(2)..*at);
        before.is_none_or(|gap| gap.iter().all(|letter| *letter == ' '))
    };
    !line.is_empty()
        && !line.starts_with(' ')
        && starts[1..].iter().all(has_gap)
        && letters.len() > starts[1]
}

fn cells(line: &str, starts: &[usize]) -> Vec<String> {
    let letters: Vec<char> = line.chars().collect();
    let ends = starts[1..].iter().copied().chain([letters.len()]);
    let cell = |(from, to): (&usize, usize)| -> String {
        let to = to.min(letters.len());
        let cell: String = letters.get(*from..to).unwrap_or_default().iter().collect();
        cell.trim_end().to_owned()
    };
    starts.iter().zip(ends).map(cell).collect()
}

fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate();
        let cells: Vec<String> = cells
            .map(|(column, cell)| format!("{cell:<width$}", width = width(column)))
            .collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Adds the ids of a list that are not known yet, the oldest first.
fn learn_ids(env: &Env, words: &[&str], part: &str, known: &mut Vec<String>) {
    let listed = env.tenure(words);
    let answer: Value = serde_json::from_str(&listed.stdout).unwrap_or_default();
    let all = answer[part].as_array().into_iter().flatten().rev();
    let ids = all.filter_map(|one| one["id"].as_str().map(str::to_owned));
    for id in ids {
        if !known.contains(&id) {
            known.push(id);
        }
    }
}
