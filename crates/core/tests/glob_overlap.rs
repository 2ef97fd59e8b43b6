//! Globs compared with an independent matcher on every small path.
//!
//! The matcher here expands braces, splits into segments and backtracks: slow, and easy to trust.

use proptest::prelude::*;
use tenure_core::glob::Glob;

#[derive(Debug, Clone)]
enum Part {
    Char(char),
    Any,
    Class(bool, Vec<char>),
    Star,
    Slash,
    Deep,
    Group(Vec<Vec<Part>>),
}

use Part::{Any, Char, Class, Deep, Group, Slash, Star};

fn print(parts: &[Part]) -> String {
    let one = |part: &Part| match part {
        Char(c) => c.to_string(),
        Any => "?".to_owned(),
        Class(negated, chars) => {
            let chars: String = chars.iter().collect();
            format!("[{}{chars}]", if *negated { "!" } else { "" })
        }
        Star => "*".to_owned(),
        Slash => "/".to_owned(),
        Deep => "**".to_owned(),
        Group(alternatives) => {
            let all: Vec<String> = alternatives.iter().map(|a| print(a)).collect();
            format!("{{{}}}", all.join(","))
        }
    };
    parts.iter().map(one).collect()
}

/// All sequences without braces.
fn expand(parts: &[Part]) -> Vec<Vec<Part>> {
    let Some((first, rest)) = parts.split_first() else {
        return vec![vec![]];
    };
    let heads = match first {
        Group(alternatives) => alternatives.iter().flat_map(|a| expand(a)).collect(),
        plain => vec![vec![plain.clone()]],
    };
    let tails = expand(rest);
    let joined = |h: &Vec<Part>| {
        let h = h.clone();
        tails
            .iter()
            .map(move |t| [h.clone(), t.clone()].concat())
            .collect::<Vec<_>>()
    };
    heads.iter().flat_map(joined).collect()
}

type Segments = Vec<Vec<Part>>;

/// The expansions as segments, without those that have an empty segment.
fn patterns(parts: &[Part]) -> Vec<Segments> {
    let split = |flat: Vec<Part>| -> Segments {
        flat.split(|p| matches!(p, Slash))
            .map(<[Part]>::to_vec)
            .collect()
    };
    let all = expand(parts).into_iter().map(split);
    all.filter(|segments| segments.iter().all(|s| !s.is_empty()))
        .collect()
}

fn is_glued(segment: &[Part]) -> bool {
    segment.len() > 1 && segment.iter().any(|p| matches!(p, Deep))
}

/// A segment that could only be `.` or `..`; what follows it can match nothing.
fn is_dots(segment: &[Part]) -> bool {
    let is_dot = |p: &Part| match p {
        Char(c) => *c == '.',
        Class(negated, chars) => !negated && chars.iter().all(|c| *c == '.'),
        _ => false,
    };
    segment.len() <= 2 && segment.iter().all(is_dot)
}

fn name_matches(parts: &[Part], name: &[char]) -> bool {
    match (parts.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((Star, rest)), _) => {
            name_matches(rest, name) || !name.is_empty() && name_matches(parts, &name[1..])
        }
        (Some((part, rest)), Some((c, after))) => {
            let fits = match part {
                Char(p) => p == c,
                Class(negated, chars) => chars.contains(c) != *negated,
                _ => true,
            };
            fits && name_matches(rest, after)
        }
        _ => false,
    }
}

fn path_matches(pattern: &[Vec<Part>], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, _) => path.is_empty(),
        (Some((segment, rest)), _) if matches!(segment[..], [Deep]) => {
            let least = usize::from(rest.is_empty());
            (least..=path.len()).any(|n| path_matches(rest, &path[n..]))
        }
        (Some((segment, rest)), Some((name, after))) => {
            let name: Vec<char> = name.chars().collect();
            name_matches(segment, &name) && path_matches(rest, after)
        }
        (Some(_), None) => false,
    }
}

fn naive(patterns: &[Segments], path: &str) -> bool {
    let names: Vec<&str> = path.split('/').collect();
    let is_path = !path.contains('\0') && names.iter().all(|n| !["", ".", ".."].contains(n));
    is_path && patterns.iter().any(|p| path_matches(p, &names))
}

/// Segments over {a,b,c} of length 1 and 2 to a depth of 3, and what lies around the rules.
fn small_paths() -> Vec<String> {
    let mut names: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
    for first in ["a", "b", "c"] {
        names.extend(["a", "b", "c"].map(|second| format!("{first}{second}")));
    }
    let mut paths = names.clone();
    let mut last = names.clone();
    for _ in 1..3 {
        let longer = |p: &String| names.iter().map(|n| format!("{p}/{n}")).collect::<Vec<_>>();
        last = last.iter().flat_map(longer).collect();
        paths.extend(last.clone());
    }
    let odd = "|.|..|...|.a|a.|..a|.b/a|a/.|a/..|../a|./a|a/./b|/a|a/|/|a//b|a/b/c/a|abc|a\0b";
    paths.extend(odd.split('|').map(str::to_owned));
    paths
}

/// `*` and `**` next to each other would be read as one.
fn apart(mut parts: Vec<Part>) -> Vec<Part> {
    parts.dedup_by(|b, a| matches!(a, Star | Deep) && matches!(b, Star | Deep));
    parts
}

fn name_part() -> impl Strategy<Value = Part> {
    let members = prop::sample::select(vec!['a', 'b', '.']);
    let class = (any::<bool>(), prop::collection::vec(members, 1..3));
    prop_oneof![
        5 => prop::sample::select(vec!['a', 'b']).prop_map(Char),
        1 => Just(Char('.')),
        2 => Just(Any),
        2 => class.prop_map(|(negated, chars)| Class(negated, chars)),
        3 => Just(Star),
    ]
}

/// Segments that are mostly well formed, some of them braces with whole globs inside.
fn tidy(depth: u32) -> BoxedStrategy<Vec<Part>> {
    let name = prop::collection::vec(name_part(), 1..4).boxed();
    let segment = match depth {
        0 => prop_oneof![5 => name, 1 => Just(vec![Deep])].boxed(),
        _ => {
            let inner = prop_oneof![4 => tidy(depth - 1), 1 => Just(vec![])];
            let group = prop::collection::vec(inner, 1..4).prop_map(|all| vec![Group(all)]);
            let group = group.boxed();
            let mixed = (name.clone(), group.clone(), name.clone());
            let mixed = mixed.prop_map(|(a, b, c)| [a, b, c].concat());
            prop_oneof![4 => name, 2 => Just(vec![Deep]), 2 => group, 1 => mixed].boxed()
        }
    };
    let path = prop::collection::vec(segment, 1..4);
    path.prop_map(|segments| apart(segments.join(&Slash)))
        .boxed()
}

/// Anything in any order, to reach the refusals.
fn wild() -> impl Strategy<Value = Vec<Part>> {
    let leaf = prop_oneof![4 => name_part(), 3 => Just(Slash), 1 => Just(Deep)];
    let part = leaf.prop_recursive(2, 12, 3, |inner| {
        let alternative = prop::collection::vec(inner, 0..4).prop_map(apart);
        prop::collection::vec(alternative, 1..4).prop_map(Group)
    });
    prop::collection::vec(part, 1..7).prop_map(apart)
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    prop_oneof![6 => tidy(2), 1 => wild()]
}

/// A glob that was accepted, its patterns, and the small paths that they match.
struct Case {
    glob: Glob,
    text: String,
    patterns: Vec<Segments>,
    matched: Vec<bool>,
}

/// Parses what was generated, and checks that it was accepted or refused with reason.
fn case(parts: &[Part], paths: &[String]) -> Result<Option<Case>, TestCaseError> {
    let (text, patterns) = (print(parts), patterns(parts));
    let bad_text = text.split('/').any(|s| ["", ".", ".."].contains(&s));
    let matched = |p: &String| naive(&patterns, p);
    match Glob::parse(&text) {
        Ok(glob) => {
            let live = |p: &Segments| p.iter().take_while(|s| !is_dots(s)).any(|s| is_glued(s));
            let glued = patterns.iter().any(live);
            prop_assert!(!glued && !bad_text, "{} was accepted", text);
            let matched = paths.iter().map(matched).collect();
            Ok(Some(Case {
                glob,
                text,
                patterns,
                matched,
            }))
        }
        Err(error) => {
            let segments = |flat: &Vec<Part>| flat.split(|p| matches!(p, Slash)).any(is_glued);
            let glued = expand(parts).iter().any(segments);
            let long = text.len() > 512;
            let reason = bad_text || glued || long || !paths.iter().any(matched);
            prop_assert!(reason, "{}: {}", text, error);
            Ok(None)
        }
    }
}

fn both(a: &[Part], b: &[Part], paths: &[String]) -> Result<(Case, Case), TestCaseError> {
    match (case(a, paths)?, case(b, paths)?) {
        (Some(a), Some(b)) => Ok((a, b)),
        _ => Err(TestCaseError::reject("refused by the parser")),
    }
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 256,
        max_global_rejects: 100_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn matches_agrees_with_the_naive_matcher(parts in parts()) {
        let paths = small_paths();
        let Some(it) = case(&parts, &paths)? else {
            return Err(TestCaseError::reject("refused by the parser"));
        };
        for (path, expected) in paths.iter().zip(&it.matched) {
            prop_assert_eq!(it.glob.matches(path), *expected, "{} {:?}", it.text, path);
        }
        let own = it.glob.witness(&it.glob);
        prop_assert!(own.is_some_and(|path| naive(&it.patterns, &path)), "{}", it.text);
    }

    #[test]
    fn globs_overlap_exactly_where_a_path_matches_both(a in parts(), b in parts()) {
        let paths = small_paths();
        let (a, b) = both(&a, &b, &paths)?;
        let shared = a.matched.iter().zip(&b.matched).position(|(x, y)| *x && *y);
        match (a.glob.witness(&b.glob), shared) {
            (Some(path), _) => {
                prop_assert!(naive(&a.patterns, &path), "{} does not match {}", a.text, path);
                prop_assert!(naive(&b.patterns, &path), "{} does not match {}", b.text, path);
            }
            (None, Some(at)) => {
                prop_assert!(false, "{} and {} both match {}", a.text, b.text, paths[at]);
            }
            (None, None) => {}
        }
        prop_assert_eq!(a.glob.overlaps(&b.glob), b.glob.overlaps(&a.glob));
    }

    #[test]
    fn inclusion_has_no_counterexample_and_finds_the_plain_cases(a in parts(), b in parts()) {
        let paths = small_paths();
        let (a, b) = both(&a, &b, &paths)?;
        if a.glob.includes(&b.glob) {
            prop_assert!(a.glob.overlaps(&b.glob), "{} {}", a.text, b.text);
            for (at, path) in paths.iter().enumerate() {
                prop_assert!(a.matched[at] || !b.matched[at], "{} {} {}", a.text, b.text, path);
            }
        }
        // Long ones may exceed the budget, which is not an error.
        if a.text.len() + b.text.len() <= 40 {
            let union = Glob::parse(&format!("{{{},{}}}", a.text, b.text)).unwrap();
            prop_assert!(union.includes(&a.glob), "{} {}", a.text, b.text);
            prop_assert!(union.includes(&b.glob), "{} {}", a.text, b.text);
            prop_assert_eq!(a.glob.includes(&union), a.glob.includes(&b.glob));
        }
    }

    #[test]
    fn inclusion_of_a_literal_path_is_the_match(a in parts(), at in 0..1884_usize) {
        let paths = small_paths();
        let Some(a) = case(&a, &paths)? else {
            return Err(TestCaseError::reject("refused by the parser"));
        };
        let path = Glob::parse(&paths[at]).unwrap();
        prop_assert_eq!(a.glob.includes(&path), a.matched[at], "{} {}", a.text, paths[at]);
        prop_assert_eq!(a.glob.overlaps(&path), a.matched[at], "{} {}", a.text, paths[at]);
    }
}
