//! Every command in the README and the reference can be typed as it stands there.

use crate::cli::can_be_typed;

const PAGES: [&str; 3] = [
    include_str!("../../../README.md"),
    include_str!("../../../docs/reference.md"),
    include_str!("../../../docs/serve.md"),
];

/// The words of a line's first command.
pub(crate) fn first_command(line: &str) -> Vec<String> {
    let mut words = words(line);
    let end = words.iter().position(|word| word == "&&" || word == "|");
    words.truncate(end.unwrap_or(words.len()));
    words
}

/// The words of a line as a shell reads them, up to a comment.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut begun) = (Vec::new(), String::new(), None, false);
    for letter in line.chars().chain([' ']) {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some(_), letter) => word.push(letter),
            (None, '\'' | '"') => (quote, begun) = (Some(letter), true),
            (None, ' ') if begun => {
                words.push(std::mem::take(&mut word));
                begun = false;
            }
            (None, ' ') => {}
            (None, '#') if !begun => return words,
            (None, letter) => {
                word.push(letter);
                begun = true;
            }
        }
    }
    words
}

#[test]
fn every_command_of_the_readme_can_be_typed() {
    let fenced = PAGES
        .iter()
        .flat_map(|page| page.split("```").skip(1).step_by(2));
    let lines = fenced.flat_map(str::lines);
    let mut count = 0;
    for line in lines.filter(|line| line.starts_with("tenure ")) {
        // The script that says it has a pid of its own.
        let line = line.replace("$$", "1");
        let words = first_command(&line);
        let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
        let typed = can_be_typed(&words);
        assert!(typed.is_ok(), "{line}: {}", typed.unwrap_err());
        count += 1;
    }
    assert!(count > 25, "{count}");
}
