//! The house as it was meant: no module of a crate points back, and no crate does.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Which of our crates each may depend on, apart from its tests. The testkit stands on core and the
/// agents' rows, so that the tests of every other crate may use it without a circle.
const ARROWS: &[(&str, &[&str])] = &[
    ("core", &[]),
    ("service", &["core"]),
    ("host", &["core"]),
    ("http", &["host"]),
    ("store", &["core"]),
    ("postgres", &["core", "store"]),
    ("agents", &["core"]),
    ("forges", &["core"]),
    ("app", &["core", "service", "host", "store", "agents"]),
    ("elsewhere", &["core", "service", "host", "agents", "app"]),
    ("views", &["core", "service", "host", "app", "elsewhere"]),
    ("doctor", &["core", "service", "host", "store", "app"]),
    (
        "runs",
        &["core", "service", "host", "agents", "forges", "app"],
    ),
    ("keeper", &["core", "service", "host", "app"]),
    (
        "dispatch",
        &["core", "service", "host", "http", "forges", "app", "runs"],
    ),
    (
        "web",
        &[
            "core",
            "service",
            "host",
            "http",
            "app",
            "elsewhere",
            "views",
            "runs",
        ],
    ),
    (
        "cli",
        &[
            "core",
            "service",
            "host",
            "agents",
            "app",
            "elsewhere",
            "runs",
            "keeper",
            "views",
            "doctor",
        ],
    ),
    (
        "server",
        &[
            "core", "service", "host", "app", "runs", "cli", "web", "dispatch", "postgres",
        ],
    ),
    ("testkit", &["core", "agents"]),
    (
        "chaos",
        &[
            "core", "service", "app", "keeper", "host", "store", "postgres", "testkit",
        ],
    ),
    (
        "bench",
        &["core", "service", "host", "store", "postgres", "testkit"],
    ),
];

/// How many lines of code a crate may have, without tests, comments and empty lines.
const LARGEST: usize = 10_000;

/// Those that are larger: docs/decisions/0009 says why they may be. Their size should fall.
const LARGER: &[(&str, usize)] = &[
    ("service", 22_450),
    ("core", 14_850),
    ("cli", 16_150),
    ("testkit", 13_100),
];

/// How many packages a build may need, tests and ours included: each is code that somebody else can change.
const MAX_PACKAGES: usize = 330;

/// How long a file may be before it is two files.
const MAX_LINES: usize = 700;

/// How many types may have the same name.
const MAX_SAME_NAME: usize = 3;

/// Names that each verb may use for its own: what clap parses, and its subcommands.
const NAMES_OF_VERBS: &[&str] = &["Args", "Act"];

type Graph = BTreeMap<String, BTreeSet<String>>;

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

fn sources(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// `service/claims/grant.rs` is `service::claims::grant`; a `mod.rs` is its folder.
fn module_of(src: &Path, file: &Path) -> String {
    let relative = file.strip_prefix(src).unwrap().with_extension("");
    let mut parts: Vec<&str> = relative.iter().map(|part| part.to_str().unwrap()).collect();
    if matches!(parts.last(), Some(&("mod" | "lib" | "main"))) {
        parts.pop();
    }
    parts.join("::")
}

/// The paths below the crate's root that a file names.
fn named_paths(module: &str, text: &str) -> Vec<String> {
    let code: String = text
        .lines()
        .take_while(|line| !line.starts_with("#[cfg(test)]"))
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n");
    let mut above: Vec<&str> = module.split("::").filter(|part| !part.is_empty()).collect();
    above.pop();
    let parent = above.join("::");
    let mut found = Vec::new();
    for (word, base) in [("crate::", String::new()), ("super::", parent)] {
        for (at, _) in code.match_indices(word) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let mut rest = &code[at + word.len()..];
            let mut base = base.as_str();
            while let Some(higher) = rest.strip_prefix("super::") {
                rest = higher;
                base = base.rsplit_once("::").map_or("", |(above, _)| above);
            }
            for tail in tails(rest) {
                found.push(if base.is_empty() {
                    tail
                } else {
                    format!("{base}::{tail}")
                });
            }
        }
    }
    found
}

/// `a::b::C` is itself; `{a::B, c::D}` are two.
fn tails(rest: &str) -> Vec<String> {
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    if let Some(group) = rest.strip_prefix('{') {
        let inside = group.split('}').next().unwrap();
        return inside
            .split(',')
            .map(|one| one.trim().chars().take_while(|c| is_path(*c)).collect())
            .collect();
    }
    vec![rest.chars().take_while(|c| is_path(*c)).collect()]
}

fn graph_of(name: &str) -> Graph {
    let src = crates().join(name).join("src");
    let files = sources(&src);
    let modules: BTreeSet<String> = files.iter().map(|file| module_of(&src, file)).collect();
    let mut graph = Graph::new();
    for file in &files {
        let module = module_of(&src, file);
        let text = std::fs::read_to_string(file).unwrap();
        let edges = graph.entry(module.clone()).or_default();
        for path in named_paths(&module, &text) {
            let mut parts: Vec<&str> = path.split("::").filter(|part| !part.is_empty()).collect();
            while !parts.is_empty() && !modules.contains(&parts.join("::")) {
                parts.pop();
            }
            let target = parts.join("::");
            if !target.is_empty() && target != module {
                edges.insert(target);
            }
        }
    }
    graph
}

/// Modules that reach each other.
fn cycles(graph: &Graph) -> Vec<String> {
    let reaches = |from: &str| {
        let mut seen = BTreeSet::new();
        let mut open = vec![from.to_owned()];
        while let Some(at) = open.pop() {
            for next in graph.get(&at).into_iter().flatten() {
                if seen.insert(next.clone()) {
                    open.push(next.clone());
                }
            }
        }
        seen
    };
    graph
        .keys()
        .filter(|module| reaches(module).contains(*module))
        .cloned()
        .collect()
}

#[test]
fn no_module_points_back() {
    for (name, _) in ARROWS {
        let graph = graph_of(name);
        assert!(
            graph.values().any(|edges| !edges.is_empty()),
            "{name} was not read"
        );
        let found = cycles(&graph);
        assert!(
            found.is_empty(),
            "{name} has modules that reach themselves: {found:?}"
        );
    }
}

/// The module of a verb that a module of the command line belongs to.
fn verb_of(module: &str) -> Option<&str> {
    let verb = module.strip_prefix("verbs::")?.split("::").next()?;
    (verb != "table").then_some(verb)
}

/// What two verbs share stands in a room below them, so that each can be read and changed alone.
#[test]
fn no_verb_names_another() {
    let graph = graph_of("cli");
    let mut verbs = BTreeSet::new();
    let mut found = Vec::new();
    for (module, edges) in &graph {
        let Some(verb) = verb_of(module) else {
            continue;
        };
        verbs.insert(verb);
        let others = edges.iter().filter_map(|edge| verb_of(edge));
        let others = others.filter(|other| *other != verb);
        found.extend(others.map(|other| format!("{module} names {other}")));
    }
    assert!(
        found.is_empty(),
        "what two verbs need goes to a room below crates/cli/src/verbs: {found:?}"
    );
    assert!(verbs.len() > 30, "{verbs:?}");
}

#[test]
fn the_cycle_finder_finds_cycles() {
    let edge = |to: &str| BTreeSet::from([to.to_owned()]);
    let graph = Graph::from([
        ("a".into(), edge("b")),
        ("b".into(), edge("a")),
        ("c".into(), edge("a")),
    ]);
    assert_eq!(cycles(&graph), ["a", "b"]);
    let paths = named_paths(
        "x::y",
        "use super::z::Thing;\nuse crate::{a::B, c};\n// crate::not\nuse super::super::q;",
    );
    assert_eq!(paths, ["a::B", "c", "x::z::Thing", "q"]);
}

#[test]
fn no_crate_points_back() {
    for (name, allowed) in ARROWS {
        let manifest = std::fs::read_to_string(crates().join(name).join("Cargo.toml")).unwrap();
        let dependencies = manifest.split("[dev-dependencies]").next().unwrap();
        for (other, _) in ARROWS {
            let named = dependencies
                .lines()
                .any(|line| line.starts_with(&format!("tenure-{other}")));
            assert!(
                !named || allowed.contains(other),
                "{name} points to {other}"
            );
        }
    }
}

/// The lines of code of a file, up to its tests.
fn code_of(file: &Path) -> usize {
    let text = std::fs::read_to_string(file).unwrap();
    let before_tests = text.lines().take_while(|line| *line != "#[cfg(test)]");
    let is_code = |line: &&str| !line.is_empty() && !line.starts_with("//");
    before_tests.map(str::trim).filter(is_code).count()
}

fn is_test(file: &Path) -> bool {
    let mut parts = file.iter().map(|part| part.to_string_lossy());
    parts.any(|part| part == "tests" || part.ends_with("tests.rs"))
}

#[test]
fn no_crate_is_a_drawer() {
    for (name, _) in ARROWS {
        let files = sources(&crates().join(name).join("src"));
        let code: usize = files
            .iter()
            .filter(|file| !is_test(file))
            .map(|file| code_of(file))
            .sum();
        let larger = LARGER.iter().find(|(larger, _)| larger == name);
        let most = larger.map_or(LARGEST, |(_, most)| *most);
        assert!(code <= most, "{name} has {code} lines of code");
    }
}

#[test]
fn the_supply_chain_has_a_ceiling() {
    let lock = std::fs::read_to_string(crates().join("../Cargo.lock")).unwrap();
    let packages = lock.lines().filter(|line| *line == "[[package]]").count();
    assert!(packages > ARROWS.len(), "Cargo.lock was not read");
    assert!(
        packages <= MAX_PACKAGES,
        "Cargo.lock has {packages} packages; {MAX_PACKAGES} are the most"
    );
}

/// The type that a line defines, by itself or as the name that `stored_enum!` begins with.
fn defined_type(line: &str) -> Option<&str> {
    let is_name = |name: &&str| {
        name.starts_with(char::is_uppercase) && name.chars().all(char::is_alphanumeric)
    };
    if let Some((name, _)) = line.trim().split_once(", \"") {
        return Some(name).filter(is_name);
    }
    let mut words = line
        .split_whitespace()
        .filter(|word| !word.starts_with("pub"));
    let kind = words.next()?;
    let is_associated = kind == "type" && line.starts_with(' ');
    if !["struct", "enum", "trait", "type"].contains(&kind) || is_associated {
        return None;
    }
    let end = |c: char| !c.is_alphanumeric();
    words.next()?.split(end).next().filter(is_name)
}

/// A reader who meets a name that stands for many things must look at the imports first.
#[test]
fn a_type_name_stands_for_at_most_three_things() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, _) in ARROWS {
        let src = crates().join(name).join("src");
        for file in sources(&src).iter().filter(|file| !is_test(file)) {
            let is_verb = file.starts_with(crates().join("cli/src/verbs"));
            let text = std::fs::read_to_string(file).unwrap();
            let before_tests = text.lines().take_while(|line| *line != "mod tests {");
            for found in before_tests.filter_map(defined_type) {
                if !(is_verb && NAMES_OF_VERBS.contains(&found)) {
                    let file = file.strip_prefix(crates()).unwrap();
                    let place = file.display().to_string();
                    places.entry(found.to_owned()).or_default().push(place);
                }
            }
        }
    }
    assert!(places.len() > 1000, "{} types were found", places.len());
    for (name, places) in &places {
        assert!(
            places.len() <= MAX_SAME_NAME,
            "{name} stands for {} things; give each of them but the domain's own a noun that says what it is \
             (docs/decisions/0033): {places:?}",
            places.len()
        );
    }
}

#[test]
fn no_file_is_too_long_to_read() {
    for entry in std::fs::read_dir(crates()).unwrap() {
        let dir = entry.unwrap().path();
        for file in sources(&dir) {
            let lines = std::fs::read_to_string(&file).unwrap().lines().count();
            assert!(lines <= MAX_LINES, "{} has {lines} lines", file.display());
        }
    }
}

/// A named statement is on one connection, and a pooler gives every transaction another one. The same is true of
/// everything else that outlives a transaction.
#[test]
fn nothing_on_a_connection_to_postgresql_outlives_a_transaction() {
    let allowed = [
        "batch_execute(",
        "execute_typed(",
        "query_typed(",
        "is_closed(",
    ];
    let banned = [
        "LISTEN ",
        "pg_advisory_lock",
        "CREATE TEMP",
        "PREPARE ",
        "WITH HOLD",
        "\"SET ",
    ];
    let mut calls = 0;
    for entry in std::fs::read_dir(crates().join("postgres/src")).unwrap() {
        let path = entry.unwrap().path();
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let place = format!("{}:{}: {line}", path.display(), number + 1);
            for call in code.split("client.").skip(1) {
                calls += 1;
                let fits = allowed.iter().any(|name| call.starts_with(name));
                assert!(fits, "{place}");
            }
            assert!(!banned.iter().any(|word| code.contains(word)), "{place}");
        }
    }
    assert!(calls > 0, "the calls are somewhere else now");
}

/// Clippy reads the nearest clippy.toml alone, so a crate's own repeats the root's bans, but for what the
/// crate is there for.
#[test]
fn a_clippy_toml_of_a_crate_only_leaves_bans_out() {
    let bans = |file: &Path| -> BTreeSet<String> {
        let text = std::fs::read_to_string(file).unwrap();
        let bans = text.lines().filter(|line| line.contains("path ="));
        bans.map(str::to_owned).collect()
    };
    let root = bans(&crates().join("../clippy.toml"));
    assert!(!root.is_empty());
    for entry in std::fs::read_dir(crates()).unwrap() {
        let own = entry.unwrap().path().join("clippy.toml");
        if own.exists() {
            let added: Vec<String> = bans(&own).difference(&root).cloned().collect();
            assert!(added.is_empty(), "{}: {added:?}", own.display());
        }
    }
}

/// Tests may call what clippy.toml bans for the product, but for this.
#[test]
fn nothing_waits_by_sleeping() {
    let call = concat!("thread::", "sleep(");
    for entry in std::fs::read_dir(crates()).unwrap() {
        for file in sources(&entry.unwrap().path()) {
            let is_the_one = ["host/src/pause.rs", "testkit/src/poll.rs"]
                .iter()
                .any(|one| file.ends_with(one));
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(is_the_one || !text.contains(call), "{}", file.display());
        }
    }
}

/// What only one kernel answers stands in one room, so that another system is a module beside it.
#[test]
fn only_the_system_reads_proc() {
    let room = crates().join("host/src/system");
    let is_read = |line: &&str| {
        let is_comment = line.trim_start().starts_with("//");
        !is_comment && (line.contains("\"/proc/") || line.contains("\"/proc\""))
    };
    let mut inside = 0;
    for (name, _) in ARROWS {
        if ["testkit", "bench", "chaos"].contains(name) {
            continue;
        }
        let files = sources(&crates().join(name).join("src"));
        for file in files.iter().filter(|file| !is_test(file)) {
            let text = std::fs::read_to_string(file).unwrap();
            let code = text.lines().take_while(|line| *line != "#[cfg(test)]");
            let reads = code.filter(is_read).count();
            let is_allowed = reads == 0 || file.starts_with(&room);
            assert!(is_allowed, "{}: ask tenure_host::system", file.display());
            inside += reads;
        }
    }
    assert!(inside > 5, "{inside}: /proc is read somewhere else now");
}

/// A repository's settings can name programs; one function pins them.
#[test]
fn one_function_builds_every_git() {
    let call = concat!("Command::new(", "\"git\")");
    let mut builders = 0;
    for entry in std::fs::read_dir(crates()).unwrap() {
        let dir = entry.unwrap().path();
        let name = dir.file_name().unwrap().to_str().unwrap().to_owned();
        if ["testkit", "bench", "chaos"].contains(&name.as_str()) {
            continue;
        }
        for file in sources(&dir.join("src")) {
            let below = file.strip_prefix(&dir).unwrap();
            let is_test = below.components().any(|part| part.as_os_str() == "tests")
                || file.ends_with("tests.rs");
            let text = std::fs::read_to_string(&file).unwrap();
            if is_test || !text.contains(call) {
                continue;
            }
            assert!(
                file.ends_with("host/src/git_process.rs"),
                "{}",
                file.display()
            );
            builders += text.matches(call).count();
        }
    }
    assert_eq!(builders, 1);
}

/// The names below a heading of a manifest.
fn dependencies(manifest: &Path, heading: &str) -> Vec<String> {
    let text = std::fs::read_to_string(manifest).unwrap();
    let below = text.lines().skip_while(|line| *line != heading).skip(1);
    below
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| Some(line.split_once(['.', ' '])?.0.to_owned()))
        .collect()
}

#[test]
fn every_dependency_is_used() {
    let mut used = BTreeSet::new();
    for entry in std::fs::read_dir(crates()).unwrap() {
        let dir = entry.unwrap().path();
        let code = |folders: &[&str]| -> String {
            let files = folders.iter().map(|folder| dir.join(folder));
            files
                .filter(|folder| folder.exists())
                .flat_map(|folder| sources(&folder))
                .map(|file| std::fs::read_to_string(file).unwrap())
                .collect()
        };
        let (product, all) = (code(&["src"]), code(&["src", "tests", "examples"]));
        let build = std::fs::read_to_string(dir.join("build.rs")).unwrap_or_default();
        let manifest = dir.join("Cargo.toml");
        for (heading, code) in [
            ("[dependencies]", product),
            ("[dev-dependencies]", all),
            ("[build-dependencies]", build),
        ] {
            for name in dependencies(&manifest, heading) {
                let path = format!("{}::", name.replace('-', "_"));
                assert!(code.contains(&path), "{}: {name}", manifest.display());
                used.insert(name);
            }
        }
    }
    assert!(used.contains("serde"), "{used:?}");
    for name in dependencies(&crates().join("../Cargo.toml"), "[workspace.dependencies]") {
        assert!(used.contains(&name), "no crate depends on {name}");
    }
}

/// `scripts/promises` takes a protection away and sees its test fail. It is too slow for every day; that it still could
/// is seen here.
#[test]
fn every_protection_can_still_be_removed() {
    let root = crates().join("..").canonicalize().unwrap();
    let tests: String = std::fs::read_dir(crates())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .flat_map(|dir| [dir.join("src"), dir.join("tests")])
        .filter(|dir| dir.exists())
        .flat_map(|dir| sources(&dir))
        .map(|file| std::fs::read_to_string(file).unwrap())
        .collect();
    let mut patches = 0;
    for entry in std::fs::read_dir(crates().join("testkit/promises")).unwrap() {
        let patch = entry.unwrap().path().canonicalize().unwrap();
        let name = patch.file_name().unwrap().to_str().unwrap();
        let applied = std::process::Command::new("git")
            .args(["apply", "--check", "--whitespace=nowarn"])
            .arg(&patch)
            .current_dir(&root)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&applied.stderr);
        assert!(applied.status.success(), "{name}: {said}");

        let text = std::fs::read_to_string(&patch).unwrap();
        let line = text.lines().find(|line| line.starts_with("Test: "));
        let test = line.and_then(|line| line.rsplit([' ', ':']).next());
        let is_there = test.is_some_and(|test| tests.contains(&format!("fn {test}(")));
        assert!(is_there, "{name}: {line:?}");
        patches += 1;
    }
    assert!(patches > 10, "{patches}");
}

/// The documents name tests as `file.rs` and `file.rs::test`; each must be there.
#[test]
fn every_test_that_the_documents_name_is_there() {
    let guarantees = tests_named_in("guarantees.md");
    assert!(guarantees > 100, "{guarantees} tests were found");
    for document in [
        "adding-an-agent.md",
        "adding-a-verb.md",
        "adding-a-column.md",
    ] {
        assert!(tests_named_in(document) > 0, "{document} names no test");
    }
}

/// How many tests a document names; panics at one that is missing.
fn tests_named_in(document: &str) -> usize {
    let text = std::fs::read_to_string(crates().join("../docs").join(document)).unwrap();
    let mut tests = 0;
    for name in text.split('`').skip(1).step_by(2) {
        let (file, test) = match name.split_once("::") {
            Some((file, test)) => (file, Some(test)),
            None => (name, None),
        };
        let Some(test) = test.filter(|_| file.ends_with(".rs")) else {
            let is_proof = document == "guarantees.md" && file.ends_with(".rs");
            assert!(!is_proof || path_of(file).exists(), "{document}: {name}");
            continue;
        };
        let Ok(code) = std::fs::read_to_string(path_of(file)) else {
            panic!("{document}: {name}: no such file");
        };
        assert!(code.contains(&format!("fn {test}(")), "{document}: {name}");
        tests += 1;
    }
    tests
}

fn path_of(file: &str) -> PathBuf {
    match file.strip_prefix("e2e/") {
        Some(own) => crates().join("cli/tests/e2e").join(own),
        None => crates().join(file),
    }
}
