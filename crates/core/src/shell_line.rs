//! The commands of a shell line, as far as the line shows them.
//!
//! Pure. `brush-parser` reads the line as bash does. A script, an alias or a variable can hide a command; a line
//! that the parser cannot read has no commands. A line that names none of the `PROGRAMS` and redirects nothing
//! is not parsed at all: most lines are such, and a hook reads every line.

use brush_parser::ast::{
    AndOr, AssignmentValue, Command, CommandPrefixOrSuffixItem as Item, CompoundCommand,
    CompoundList, IoFileRedirectKind, IoFileRedirectTarget, IoRedirect, Pipeline,
    SeparatorOperator, SimpleCommand, Word,
};
use brush_parser::word::{self, WordPiece, WordPieceWithSource};
use brush_parser::{Parser, ParserOptions, SourceInfo};

/// The programs whose writes are known from their arguments.
const PROGRAMS: &[&str] = &["tee", "cp", "mv", "rm", "sed", "dd", "git"];
/// Programs that run the command in their arguments.
const PREFIXES: &[&str] = &["sudo", "env", "command", "builtin", "time", "exec", "nohup"];
/// Shells that read a line from an argument.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh"];
/// How deep brackets may be nested. For each more of them that is not closed, the parser takes twice as long.
const MAX_BRACKETS: usize = 12;
/// How many words of a line may open a part of it. The parser recurses.
const MAX_OPENED: usize = 64;
/// How many digits a descriptor may have.
const MAX_DIGITS: usize = 9;
/// How deep a line may be quoted in another.
const MAX_LINES: usize = 6;

/// One command of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellCommand {
    /// The program and its arguments, without `sudo` and the like.
    pub words: Vec<ShellWord>,
    /// The files that its output is redirected to.
    pub redirects: Vec<ShellWord>,
    /// Where it runs.
    pub at: Directory,
}

impl ShellCommand {
    /// The program's name without its directory.
    pub fn program(&self) -> &str {
        let first = self.words.first().filter(|word| word.is_plain);
        first.map_or("", |word| base_name(&word.text))
    }
}

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShellWord {
    /// Its text, without quotes.
    pub text: String,
    /// Whether the program gets exactly this text: nothing in it is replaced by the shell.
    pub is_plain: bool,
}

/// A directory, as far as the line shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Directory {
    /// Where the line runs.
    Here,
    /// Relative to where the line runs, or absolute.
    At(String),
    Untold,
}

impl Directory {
    /// The directory after `cd` into another one.
    #[must_use]
    pub fn then(&self, named: &ShellWord) -> Directory {
        let is_known = named.is_plain && named.text != "-";
        match (self, named.text.as_str()) {
            _ if !is_known => Directory::Untold,
            (_, text) if text.starts_with('/') => Directory::At(text.to_owned()),
            (Directory::Here, text) => Directory::At(text.to_owned()),
            (Directory::At(before), text) => Directory::At(format!("{before}/{text}")),
            (Directory::Untold, _) => Directory::Untold,
        }
    }

    /// A file's path relative to where the line runs, or absolute; none if the line does not show it.
    pub fn path(&self, file: &ShellWord) -> Option<String> {
        match self.then(file) {
            Directory::At(path) if !file.text.is_empty() => Some(path),
            _ => None,
        }
    }
}

/// The last part of a path.
pub(crate) fn base_name(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// The commands of a line in their order; none if no command of the line can write a file.
pub fn commands(line: &str) -> Vec<ShellCommand> {
    if !may_write(line) {
        return Vec::new();
    }
    let mut reader = ShellReader {
        at: Directory::Here,
        options: ParserOptions::default(),
        lines: 0,
        found: Vec::new(),
    };
    reader.line(line);
    reader.found
}

/// Whether a line redirects anything or names one of the programs.
fn may_write(line: &str) -> bool {
    let mut names = line.split(|c: char| !c.is_ascii_alphanumeric());
    line.contains('>') || names.any(|name| PROGRAMS.contains(&name))
}

struct ShellReader {
    at: Directory,
    options: ParserOptions,
    /// In how many lines the present one is quoted.
    lines: usize,
    found: Vec<ShellCommand>,
}

impl ShellReader {
    fn line(&mut self, line: &str) {
        let line = without_documents(line);
        if self.lines == MAX_LINES || is_too_deep(&line) || has_long_number(&line) {
            return;
        }
        let read =
            Parser::new(line.as_bytes(), &self.options, &SourceInfo::default()).parse_program();
        self.lines += 1;
        for list in read.iter().flat_map(|program| &program.complete_commands) {
            self.list(list);
        }
        self.lines -= 1;
    }

    /// Reads what runs in a shell of its own: its `cd` has no effect outside.
    fn apart(&mut self, read: impl FnOnce(&mut Self)) {
        let at = self.at.clone();
        read(self);
        self.at = at;
    }

    fn list(&mut self, list: &CompoundList) {
        for item in &list.0 {
            let read = |reader: &mut Self| {
                reader.pipeline(&item.0.first);
                for AndOr::And(next) | AndOr::Or(next) in &item.0.additional {
                    reader.pipeline(next);
                }
            };
            match item.1 {
                SeparatorOperator::Async => self.apart(read),
                SeparatorOperator::Sequence => read(self),
            }
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        match pipeline.seq.as_slice() {
            [one] => self.command(one),
            parts => {
                for part in parts {
                    self.apart(|reader| reader.command(part));
                }
            }
        }
    }

    fn command(&mut self, command: &Command) {
        match command {
            Command::Simple(simple) => self.simple(simple),
            Command::Compound(compound, redirects) => {
                let redirects = redirects.iter().flat_map(|list| &list.0);
                let redirects = redirects.filter_map(|redirect| self.redirect(redirect));
                let redirects = redirects.collect();
                self.found.push(ShellCommand {
                    words: Vec::new(),
                    redirects,
                    at: self.at.clone(),
                });
                self.compound(compound);
            }
            // A function runs when it is called.
            Command::Function(_) | Command::ExtendedTest(_) => {}
        }
    }

    fn compound(&mut self, compound: &CompoundCommand) {
        match compound {
            CompoundCommand::Arithmetic(_) => {}
            CompoundCommand::ArithmeticForClause(each) => self.list(&each.body.list),
            CompoundCommand::BraceGroup(group) => self.list(&group.list),
            CompoundCommand::Subshell(shell) => self.apart(|reader| reader.list(&shell.list)),
            CompoundCommand::ForClause(each) => self.list(&each.body.list),
            CompoundCommand::CaseClause(case) => {
                for body in case.cases.iter().filter_map(|case| case.cmd.as_ref()) {
                    self.list(body);
                }
            }
            CompoundCommand::IfClause(choice) => {
                self.list(&choice.condition);
                self.list(&choice.then);
                for other in choice.elses.iter().flatten() {
                    other.condition.iter().for_each(|list| self.list(list));
                    self.list(&other.body);
                }
            }
            CompoundCommand::WhileClause(each) | CompoundCommand::UntilClause(each) => {
                self.list(&each.0);
                self.list(&each.1.list);
            }
        }
    }

    fn simple(&mut self, simple: &SimpleCommand) {
        let mut redirects = Vec::new();
        for item in simple.prefix.iter().flat_map(|prefix| &prefix.0) {
            self.item(item, &mut Vec::new(), &mut redirects);
        }
        let mut words: Vec<ShellWord> = Vec::new();
        words.extend(simple.word_or_name.iter().map(|word| self.word(word)));
        for item in simple.suffix.iter().flat_map(|suffix| &suffix.0) {
            self.item(item, &mut words, &mut redirects);
        }
        let command = ShellCommand {
            words: without_prefixes(words),
            redirects,
            at: self.at.clone(),
        };
        self.runs(&command);
        self.found.push(command);
    }

    /// Follows what a command does to the rest of the line.
    fn runs(&mut self, command: &ShellCommand) {
        let arguments = command.words.get(1..).unwrap_or_default();
        match command.program() {
            "cd" | "pushd" => {
                let named = arguments.iter().find(|word| !word.text.starts_with('-'));
                self.at = self.at.then(named.unwrap_or(&ShellWord::default()));
            }
            "popd" => self.at = Directory::Untold,
            "eval" => {
                let words: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
                self.line(&words.join(" "));
            }
            shell if SHELLS.contains(&shell) => {
                let is_option = |word: &ShellWord| {
                    word.text.starts_with('-') && word.text.ends_with('c') && word.is_plain
                };
                let at = arguments.iter().position(is_option);
                if let Some(script) = at.and_then(|at| arguments.get(at + 1)) {
                    self.apart(|reader| reader.line(&script.text));
                }
            }
            _ => {}
        }
    }

    fn item(&mut self, item: &Item, words: &mut Vec<ShellWord>, redirects: &mut Vec<ShellWord>) {
        match item {
            Item::IoRedirect(redirect) => redirects.extend(self.redirect(redirect)),
            Item::Word(word) => words.push(self.word(word)),
            // `env A=b` and `dd of=f` pass the word on.
            Item::AssignmentWord(assignment, word) => match &assignment.value {
                AssignmentValue::Scalar(_) => words.push(self.word(word)),
                AssignmentValue::Array(values) => {
                    values.iter().for_each(|(_, value)| drop(self.word(value)));
                }
            },
            Item::ProcessSubstitution(_, shell) => {
                self.apart(|reader| reader.list(&shell.list));
                words.push(ShellWord::default());
            }
        }
    }

    /// The file that is written.
    fn redirect(&mut self, redirect: &IoRedirect) -> Option<ShellWord> {
        match redirect {
            IoRedirect::File(_, kind, target) => {
                let file = match target {
                    IoFileRedirectTarget::Filename(word)
                    | IoFileRedirectTarget::Duplicate(word) => self.word(word),
                    IoFileRedirectTarget::Fd(_) => return None,
                    IoFileRedirectTarget::ProcessSubstitution(_, shell) => {
                        self.apart(|reader| reader.list(&shell.list));
                        return None;
                    }
                };
                let is_write = match kind {
                    IoFileRedirectKind::Write
                    | IoFileRedirectKind::Append
                    | IoFileRedirectKind::ReadAndWrite
                    | IoFileRedirectKind::Clobber => true,
                    // `>&2` and `>&-` name no file.
                    IoFileRedirectKind::DuplicateOutput => {
                        !file.text.bytes().all(|c| c.is_ascii_digit() || c == b'-')
                    }
                    IoFileRedirectKind::Read | IoFileRedirectKind::DuplicateInput => false,
                };
                is_write.then_some(file)
            }
            IoRedirect::OutputAndError(file, _) => Some(self.word(file)),
            IoRedirect::HereString(_, word) => {
                self.word(word);
                None
            }
            IoRedirect::HereDocument(..) => None,
        }
    }

    /// The text of a word; reads the commands in it.
    fn word(&mut self, word: &Word) -> ShellWord {
        let Ok(pieces) = word::parse(&word.value, &self.options) else {
            return ShellWord::default();
        };
        let mut read = ShellWord {
            text: String::new(),
            is_plain: true,
        };
        self.pieces(&pieces, false, &mut read);
        read
    }

    fn pieces(&mut self, pieces: &[WordPieceWithSource], is_quoted: bool, read: &mut ShellWord) {
        for piece in pieces {
            match &piece.piece {
                WordPiece::Text(text) => {
                    read.is_plain &= is_quoted || !text.contains(['*', '?', '[', '{']);
                    read.text.push_str(text);
                }
                WordPiece::SingleQuotedText(text) => read.text.push_str(text),
                WordPiece::EscapeSequence(text) => {
                    read.text.push_str(text.strip_prefix('\\').unwrap_or(text));
                }
                WordPiece::DoubleQuotedSequence(inner)
                | WordPiece::GettextDoubleQuotedSequence(inner) => {
                    self.pieces(inner, true, read);
                }
                WordPiece::CommandSubstitution(line)
                | WordPiece::BackquotedCommandSubstitution(line) => {
                    self.apart(|reader| reader.line(line));
                    read.is_plain = false;
                }
                WordPiece::AnsiCQuotedText(_)
                | WordPiece::TildePrefix(_)
                | WordPiece::ParameterExpansion(_)
                | WordPiece::ArithmeticExpression(_) => read.is_plain = false,
            }
        }
    }
}

/// The words from the program on.
fn without_prefixes(words: Vec<ShellWord>) -> Vec<ShellWord> {
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.peek() {
        if !PREFIXES.contains(&base_name(&word.text)) {
            break;
        }
        words.next();
        let goes_with = |word: &ShellWord| word.text.starts_with('-') || word.text.contains('=');
        while words.next_if(goes_with).is_some() {}
    }
    words.collect()
}

/// The line with empty here-documents (`<<WORD`).
fn without_documents(line: &str) -> String {
    let mut kept = String::with_capacity(line.len());
    let mut until: Option<String> = None;
    for text in line.lines() {
        if let Some(end) = &until {
            if text.trim_start_matches('\t') != end {
                continue;
            }
            until = None;
        } else {
            until = document_end(text);
        }
        kept.push_str(text);
        kept.push('\n');
    }
    kept
}

fn document_end(text: &str) -> Option<String> {
    let (before, after) = text.split_once("<<")?;
    // `<<<` passes a word, and a shifted number is not a document.
    if after.starts_with('<') || before.ends_with("((") {
        return None;
    }
    let word = after.trim_start_matches('-').trim_start();
    let end: String = word
        .trim_start_matches(['\'', '"', '\\'])
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect();
    (!end.is_empty()).then_some(end)
}

/// Whether a redirection has a number that is longer than the parser takes: it panics.
fn has_long_number(line: &str) -> bool {
    let joined = line.replace("\\\n", "");
    joined.split(['<', '>']).rev().skip(1).any(|before| {
        let ends_word = |c: char| c.is_whitespace() || ";|&()".contains(c);
        let word = before.rsplit(ends_word).next().unwrap_or_default();
        word.len() > MAX_DIGITS && word.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn is_too_deep(line: &str) -> bool {
    let (mut now, mut deepest) = (0_usize, 0);
    for c in line.bytes() {
        match c {
            b'(' | b'{' => now += 1,
            b')' | b'}' => now = now.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(now);
    }
    let words = |meant: &[&str]| {
        let words = line.split(|c: char| !c.is_ascii_alphabetic());
        words.filter(|word| meant.contains(word)).count()
    };
    // Its patterns close a bracket that nothing opened.
    deepest + words(&["case"]) > MAX_BRACKETS
        || words(&["if", "elif", "while", "until", "for", "select"]) > MAX_OPENED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_that_no_system_has_is_not_read() {
        for line in [
            "echo a 99999999999999999999> f",
            "echo a 9999999999\\\n9999999999>f",
            "echo a;99999999999999999999<f >g",
        ] {
            assert_eq!(commands(line), [], "{line}");
        }
        for line in [
            "echo 99999999999999999999 > f; rm g",
            "rm 1700000000.log; echo a1700000000> f-1700000000.txt",
            "rm {1..99999999999999999999} a; rm b",
        ] {
            assert_eq!(commands(line).len(), 2, "{line}");
        }
    }

    #[test]
    fn a_line_that_names_no_program_is_not_parsed() {
        for line in [
            "cargo test --workspace",
            "grep -rn platform src",
            "ls; echo $(pwd)",
        ] {
            assert!(!may_write(line), "{line}");
        }
        for line in ["ls 2>/dev/null", "x && rm f", "/bin/cp a b", "git status"] {
            assert!(may_write(line), "{line}");
        }
    }

    #[test]
    fn a_line_that_is_nested_without_end_takes_neither_time_nor_stack() {
        for open in [
            "(",
            "if ",
            "$(",
            "{ ",
            "${a:-",
            "`",
            "while ",
            "case a in b) ",
        ] {
            for times in [MAX_BRACKETS, MAX_OPENED, 100_000] {
                let line = format!("rm x; {}", open.repeat(times));
                drop(commands(&line));
            }
        }
        let mut quoted = "rm x".to_owned();
        for _ in 0..MAX_LINES + 2 {
            quoted = format!("sh -c {}", crate::text::shell(&quoted));
        }
        assert!(!commands(&quoted).iter().any(|one| one.program() == "rm"));
    }

    proptest::proptest! {
        #[test]
        fn no_line_breaks_the_parser(parts in proptest::collection::vec(
            proptest::sample::select(vec![
                "a", " ", "\n", ";", "&", "|", "(", ")", "{", "}", "$(", "`", "'", "\"", "\\", "<", "<<", ">",
                "if ", "then ", "fi ", "for ", "in ", "do ", "done ", "case ", "esac ", ";;", "$", "${", "#",
                ":", "=", "-", "!", "*", "[", "~", "1", "EOF", "<<EOF\n", "<<-'EOF'\n", "$((", "))", "é", "rm x",
            ]), 0..24,
        )) {
            drop(commands(&format!("> f; {}", parts.concat())));
        }
    }
}
