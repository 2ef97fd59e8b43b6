use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::*;
use tenure_app::settings::Settings;

const GOOD: &str = r#"concurrency = 2

[forge.home]
kind = "forgejo"
secret_files = ["home.secret"]

[repo."Acme/Web"]
forge = "home"
dir = "web"
trusted = true

[[rule]]
name = "fix"
repo = "acme/web"
on = ["issue.opened", "issue.comment"]
authors = ["alice"]
agent = "claude"
skill = "fix"
"#;

struct ConfigDir {
    dir: tempfile::TempDir,
}

impl ConfigDir {
    /// A directory with a secret, a token and a repository that has the skill `fix`.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let place = Self { dir };
        place.private("home.secret", "hunter2\n");
        place.private("home.token", "token");
        let web = place.path("web");
        tenure_testkit::scratch_git(&web, Some("https://git.example.org/acme/web"));
        let skills = web.join(".tenure/skills");
        fs_err::create_dir_all(&skills).unwrap();
        fs_err::write(skills.join("fix.md"), "Fix {{ title }}").unwrap();
        fs_err::write(skills.join("fix-delta.md"), "Go on with {{ title }}").unwrap();
        fs_err::write(skills.join("odd.md"), "Fix {{ titel }}").unwrap();
        git(&web, &["add", "."]);
        let who = ["-c", "user.name=T", "-c", "user.email=t@example.invalid"];
        let commit = ["commit", "--quiet", "-m", "skills"];
        git(&web, &[&who[..], &commit[..]].concat());
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn private(&self, name: &str, text: &str) {
        fs_err::write(self.path(name), text).unwrap();
        self.mode(name, 0o600);
    }

    fn mode(&self, name: &str, mode: u32) {
        let mode = std::fs::Permissions::from_mode(mode);
        fs_err::set_permissions(self.path(name), mode).unwrap();
    }

    fn parse(&self, text: &str) -> Result<Checked, Vec<ConfigFault>> {
        let user = self.path("user");
        Config::parse(&self.path(NAME), text, &Settings::default(), Some(&user))
    }

    /// The faults of the valid file after a replacement, as people read them.
    #[track_caller]
    fn faults(&self, from: &str, to: &str) -> Vec<String> {
        assert!(GOOD.contains(from), "{from}");
        let faults = self.parse(&GOOD.replacen(from, to, 1)).unwrap_err();
        let dir = self.dir.path().display().to_string();
        faults
            .iter()
            .map(|fault| fault.to_string().replace(&dir, "DIR"))
            .collect()
    }
}

fn git(dir: &Path, args: &[&str]) {
    let status = std::process::Command::new("git")
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn a_file_without_faults_is_read_whole() {
    let place = ConfigDir::new();
    let Checked { config, notes } = place.parse(GOOD).unwrap();
    assert_eq!((config.concurrency, config.breaker), (2, 10));
    assert_eq!(config.listen.to_string(), "127.0.0.1:7421");
    let forge = config.forge("home").unwrap();
    assert_eq!((forge.row.kind, forge.secrets.len()), ("forgejo", 1));
    assert!(!format!("{forge:?}").contains("hunter2"));
    let repo = config.repo("home", "acme/web").unwrap();
    assert!(repo.trusted);
    assert_eq!(repo.url, "https://git.example.org/acme/web", "of its clone");
    assert_eq!(config.rules.rules[0].name, "fix");
    // Without `wrap`, a note tells which user the agent runs as.
    assert!(notes[0].contains("wrap"), "{notes:?}");
    assert_eq!(notes.len(), 1, "{notes:?}");
}

#[test]
fn what_is_not_read_of_a_repository_that_is_not_trusted_is_said_once() {
    let place = ConfigDir::new();
    let skills = place.path("user").join("skills");
    fs_err::create_dir_all(&skills).unwrap();
    fs_err::write(skills.join("fix.md"), "Fix {{ title }}").unwrap();
    let strange = GOOD.replace("trusted = true\n", "");
    let Checked { notes, .. } = place.parse(&strange).unwrap();
    let said: Vec<_> = notes
        .iter()
        .filter(|note| note.contains("CLAUDE.md"))
        .collect();
    let expected =
        "acme/web is not trusted, so its own settings, CLAUDE.md and AGENTS.md are not read";
    assert_eq!(said, [expected], "{notes:?}");
}

#[test]
fn each_fault_is_named_with_its_line_and_key() {
    let place = ConfigDir::new();
    place.private("empty.secret", " \n");
    place.private("loose.secret", "x");
    place.mode("loose.secret", 0o640);
    for (from, to, expected) in [
        (
            "concurrency",
            "concurency",
            "line 1, concurency: there is no such key; expected one of listen, concurrency, breaker, keep_deliveries, sweep, places",
        ),
        (
            "concurrency = 2",
            "concurrency = 0",
            "line 1, concurrency: it must be at least 1",
        ),
        (
            "concurrency = 2",
            "concurrency = \"2\"",
            "line 1, concurrency: expected a whole number, not \"2\"",
        ),
        (
            "concurrency = 2",
            "grace = \"3d\"",
            "line 1, grace: there is no such key; how long a closed item can come back is grace in config.toml (`tenure config`)",
        ),
        (
            "concurrency = 2",
            "keep_deliveries = \"soon\"",
            "line 1, keep_deliveries: expected a number with a unit, such as 500ms, 90s, 5m, 1h30m or 2d",
        ),
        (
            "concurrency = 2",
            "listen = \"here\"",
            "line 1, listen: expected an address and a port, such as 127.0.0.1:7421",
        ),
        (
            "concurrency = 2",
            "concurrency =",
            "line 1: it is not valid TOML: string values must be quoted, expected literal string",
        ),
        (
            "\"forgejo\"",
            "\"svn\"",
            "line 4, forge home, kind: svn is unknown; expected one of forgejo, gitea, github, gitlab",
        ),
        (
            "home.secret",
            "missing",
            "line 5, forge home, secret_files: failed to open file `DIR/missing`: No such file or directory (os error 2)",
        ),
        (
            "home.secret",
            "empty.secret",
            "line 5, forge home, secret_files: DIR/empty.secret is empty",
        ),
        (
            "home.secret",
            "loose.secret",
            "line 5, forge home, secret_files: others can read DIR/loose.secret (mode 0640); run `chmod 600 DIR/loose.secret` and change the secret",
        ),
        (
            "[\"home.secret\"]",
            "[]",
            "line 5, forge home, secret_files: expected one file, or two while a secret is being replaced",
        ),
        (
            "forge = \"home\"",
            "forge = \"work\"",
            "line 8, repo Acme/Web, forge: there is no [forge.work]",
        ),
        (
            "dir = \"web\"\n",
            "",
            "line 7, repo Acme/Web, url: it is missing; name the address of the repository, or set url of its forge",
        ),
        (
            "dir = \"web\"",
            "url = \"ext::sh -c evil\"",
            "line 9, repo Acme/Web, url: expected an address of https, http, ssh or git, or an absolute path",
        ),
        (
            "dir = \"web\"",
            "url = \"https://me:secret@git.example.org/acme/web\"",
            "line 9, repo Acme/Web, url: it has a password, which others could read; use token_file of its forge, or ssh",
        ),
        (
            "secret_files",
            "bots = [\"@renovate\"]\nsecret_files",
            "line 5, forge home, bots: expected logins without @, or id:NUMBER",
        ),
        (
            "authors",
            "push = true\nauthors",
            "line 16, rule 1, push: acme/web has no token to push with; set push_credential, or token_file of forge home",
        ),
        (
            "authors",
            "workflows = true\nauthors",
            "line 16, rule 1, workflows: it needs push = true",
        ),
        (
            "authors",
            "publish = \"later\"\nauthors",
            "line 16, rule 1, publish: expected \"ask\": every result waits for a person",
        ),
        (
            "authors",
            "wrap = [\"true\", \"{repository}\"]\nauthors",
            "line 16, rule 1, wrap: {repository} stands for nothing; expected one of {dir}, {home}, {socket}, {run}",
        ),
        (
            "authors",
            "wrap = [\"true\", \"{socket}\"]\nauthors",
            "line 12, rule 1, model: it is missing, but {socket} in wrap needs it",
        ),
        (
            "authors",
            "wrap = [\"true\", \"{socket}\"]\nmodel = { url = \"http://model.example.org\" }\nauthors",
            "line 17, rule 1, model: expected a url that begins with https://, or one on this machine with http://",
        ),
        (
            "\"web\"",
            "\"nowhere\"",
            "line 9, repo Acme/Web, dir: DIR/nowhere is not in a git repository",
        ),
        (
            "issue.comment",
            "issue.commented",
            "line 15, rule 1, on: \"issue.commented\" is not valid: expected one of issue.opened,",
        ),
        (
            "agent = \"claude\"",
            "agent = \"clod\"",
            "line 17, rule 1, agent: tenure does not know how to run clod; it can run claude,",
        ),
        (
            "agent = \"claude\"\n",
            "",
            "line 12, rule 1, agent: it is missing",
        ),
        (
            "skill = \"fix\"",
            "skill = \"fit\"",
            "line 18, rule 1, skill: skill fit was not found: there is no DIR/user/skills/fit.md, and no ",
        ),
        (
            "skill = \"fix\"",
            "skill = \"odd\"",
            "line 18, rule 1, skill: skill odd cannot be rendered: ",
        ),
        (
            "[\"alice\"]",
            "[]",
            "line 16, rule 1, authors: this rule never matches, because it names nobody who may start a run; set authors or associations",
        ),
        (
            "[\"alice\"]",
            "[\"@alice\"]",
            "line 16, rule 1, authors: expected logins without @, or id:NUMBER",
        ),
        (
            "repo = \"acme/web\"",
            "repo = \"acme/app\"",
            "line 14, rule 1, repo: this rule never matches, because there is no [repo.\"acme/app\"]",
        ),
        (
            "authors = [\"alice\"]",
            "associations = [\"member\"]",
            "line 16, rule 1, associations: this rule never matches, because forge home does not send associations; set its url and token_file, or name authors",
        ),
        (
            "authors",
            "label = \" \"\nauthors",
            "line 16, rule 1, label: it is empty",
        ),
        (
            "authors",
            "env = [\"TENURE_HOME\"]\nauthors",
            "line 16, rule 1, env: \"TENURE_HOME\" is a variable that tenure sets itself",
        ),
        (
            "authors",
            "reply = \"shout\"\nauthors",
            "line 16, rule 1, reply: \"shout\" is not valid: expected one of none, reaction, comment",
        ),
        (
            "authors",
            "reply = \"comment\"\nauthors",
            "line 16, rule 1, reply: forge home needs url and token_file for it",
        ),
        (
            "authors",
            "caps = { runs_per_hour = 0 }\nauthors",
            "line 16, rule 1, caps: a cap must be more than 0",
        ),
        (
            "authors",
            "caps = { runs_per_day = 1 }\nauthors",
            "line 16, rule 1, caps: there is no such key; expected one of runs_per_hour",
        ),
        (
            "authors",
            "branch = \"main\"\nauthors",
            "line 16, rule 1, branch: this rule never matches, because none of its events has branch",
        ),
        (
            "[[rule]]",
            "[rule]",
            "line 12, rule: expected sections such as [[rule]]",
        ),
    ] {
        let faults = place.faults(from, to);
        assert!(
            faults[0].starts_with(expected),
            "{to}\n{faults:#?}\n{expected}"
        );
    }
}

#[test]
fn all_faults_are_named_at_once() {
    let place = ConfigDir::new();
    let bad = GOOD
        .replace("concurrency = 2", "concurrency = 0\ncolour = 1\nshape = 2")
        .replace("\"forgejo\"", "\"svn\"")
        .replace("agent = \"claude\"", "agnet = \"claude\"\nagent = 1");
    let faults = place.parse(&bad).unwrap_err();
    let named: Vec<(usize, &str)> = faults
        .iter()
        .map(|fault| (fault.line, fault.key.as_str()))
        .collect();
    assert_eq!(
        named,
        [
            (1, "concurrency"),
            (2, "colour"),
            (3, "shape"),
            (6, "forge home: kind"),
            (19, "rule 1: agnet"),
            (20, "rule 1: agent"),
        ]
    );
}

#[test]
fn a_token_comes_with_its_address_and_its_account() {
    let place = ConfigDir::new();
    let with = |more: &str| {
        let kind = format!("kind = \"forgejo\"\n{more}");
        place.parse(&GOOD.replacen("kind = \"forgejo\"", &kind, 1))
    };
    let whole =
        "url = \"https://git.example.org\"\ntoken_file = \"home.token\"\nown_account = \"bot\"";
    let checked = with(whole).unwrap();
    assert!(checked.config.forges[0].has_api());
    for (without, key) in [
        ("url = \"https://git.example.org\"\n", "forge home: url"),
        ("token_file = \"home.token\"\n", "forge home: token_file"),
        ("own_account = \"bot\"", "forge home: own_account"),
    ] {
        let faults = with(&whole.replace(without, "")).unwrap_err();
        assert_eq!(faults[0].key, key);
    }
    let plain = with(&whole.replace("https", "http")).unwrap_err();
    assert!(plain[0].why.contains("https://"), "{plain:?}");
    assert!(with(&whole.replace("https://git.example.org", "http://127.0.0.1:9")).is_ok());
    assert!(with(&whole.replace("https://git.example.org", "http://127.0.0.1.evil")).is_err());
    // The token's own account may not trigger runs.
    let own = whole.replace("\"bot\"", "\"Alice\"");
    let faults = with(&own).unwrap_err();
    assert_eq!(faults[0].key, "rule 1: authors");
}

#[test]
fn certificates_of_a_forge_must_be_readable_and_a_sweep_takes_time() {
    let place = ConfigDir::new();
    let with = |top: &str, more: &str| {
        let api =
            "url = \"https://git.example.org\"\ntoken_file = \"home.token\"\nown_account = \"bot\"";
        let kind = format!("kind = \"forgejo\"\n{api}\n{more}");
        let text = GOOD.replacen("kind = \"forgejo\"", &kind, 1);
        place.parse(&format!("{top}\n{text}"))
    };
    let sweep = |top: &str| with(top, "").unwrap().config.sweep.as_secs();
    assert_eq!((sweep(""), sweep("sweep = \"1h\"")), (600, 3_600));
    let never = with("sweep = \"0s\"", "").unwrap_err();
    assert_eq!(never[0].key, "sweep");
    let ca = "ca_file = \"ca.pem\"";
    assert_eq!(with("", ca).unwrap_err()[0].key, "forge home: ca_file");
    fs_err::write(place.path("ca.pem"), "no certificate").unwrap();
    let faults = with("", ca).unwrap_err();
    assert!(
        faults[0].why.ends_with("has no certificate in PEM"),
        "{faults:?}"
    );
    let known = include_bytes!("../tests/forges/tls/ca.pem");
    fs_err::write(place.path("ca.pem"), known).unwrap();
    assert!(with("", ca).unwrap().config.forges[0].has_api());
}

#[test]
fn a_token_is_read_anew_when_its_file_changed_and_kept_while_it_is_gone() {
    let place = ConfigDir::new();
    let connection = super::connection::Connection::new(
        "forgejo",
        "https://git.example.org",
        place.path("home.token"),
        None,
    );
    let first = connection.api().unwrap();
    let same = connection.api().unwrap();
    assert!(
        std::sync::Arc::ptr_eq(&first, &same),
        "one connection for all"
    );
    fs_err::remove_file(place.path("home.token")).unwrap();
    let kept = connection.api().unwrap();
    assert!(std::sync::Arc::ptr_eq(&first, &kept));
    place.private("home.token", "another token");
    let next = connection.api().unwrap();
    assert!(!std::sync::Arc::ptr_eq(&first, &next));
    // A file that others can read is not accepted as a token.
    place.private("home.token", "a third token");
    place.mode("home.token", 0o644);
    let kept = connection.api().unwrap();
    assert!(std::sync::Arc::ptr_eq(&next, &kept));
}

#[test]
fn two_rules_of_one_name_and_a_rule_that_is_hidden_are_named() {
    let place = ConfigDir::new();
    let rule = GOOD.split_once("[[rule]]").unwrap().1;
    let twice = format!("{GOOD}\n[[rule]]{rule}");
    let faults = place.parse(&twice).unwrap_err();
    let told: Vec<String> = faults.iter().map(ConfigFault::to_string).collect();
    assert_eq!(
        told,
        [
            "line 21, rule 2, name: another rule is also called fix",
            "line 23, rule 2, on: this rule never matches, because rule fix comes first and matches everything that this one does",
        ]
    );
}

#[test]
fn every_repository_of_a_rule_needs_its_skill_and_has_one_section() {
    let place = ConfigDir::new();
    let app = place.path("app");
    tenure_testkit::scratch_git(&app, Some("https://git.example.org/acme/app"));
    let more = "[repo.\"acme/app\"]\nforge = \"home\"\ndir = \"app\"\ntrusted = true\n\n[[rule]]";
    let both = GOOD
        .replace("[[rule]]", more)
        .replace("repo = \"acme/web\"\n", "");
    let faults = place.parse(&both).unwrap_err();
    assert_eq!(faults[0].key, "rule 1: skill");
    let twice = GOOD.replace(
        "[[rule]]",
        &more
            .replace("acme/app", "acme/WEB")
            .replace("\"app", "\"web"),
    );
    let faults = place.parse(&twice).unwrap_err();
    assert_eq!(
        faults[0].to_string(),
        "line 12, repo acme/WEB: acme/web has a section already"
    );
}

#[test]
fn a_captured_delivery_is_a_body_or_headers_and_a_body() {
    let place = ConfigDir::new();
    let config = place.parse(GOOD).unwrap().config;
    let body = r#"{"action":"opened","issue":{"number":6,"user":{"login":"alice"}},
        "repository":{"full_name":"acme/web"},"sender":{"login":"alice"}}"#;
    let asked = |text: &str, event: Option<&str>| {
        ReadDelivery::of_file(
            &config,
            CapturedDelivery::parse(text.as_bytes()),
            None,
            event,
        )
        .map(|given| explain(&config, given))
    };
    let with_headers = format!("X-Forgejo-Event: issues\r\nX-GitHub-Event: issues\r\n\r\n{body}");
    for explained in [
        asked(body, Some("issues")).unwrap(),
        asked(body, Some("X-Gitea-Event: issues")).unwrap(),
        asked(&with_headers, None).unwrap(),
    ] {
        assert_eq!(explained.decision.runs[0].rule, "fix");
        assert_eq!(explained.view()["item"], "issue:acme/web#6");
    }
    assert_eq!(asked(body, None).unwrap_err().kind, "unreadable_delivery");
    assert_eq!(asked("", None).unwrap_err().kind, "unreadable_delivery");
    let other = asked(&with_headers.replace("X-Forgejo", "X-Gitlab"), None);
    assert_eq!(other.unwrap_err().kind, "other_forge");
    let unknown = ReadDelivery::of_file(
        &config,
        CapturedDelivery::parse(body.as_bytes()),
        Some("work"),
        None,
    );
    assert_eq!(unknown.unwrap_err().kind, "unknown_forge");
}
