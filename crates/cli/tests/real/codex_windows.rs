//! Codex as people have it: windows in a terminal, and one daemon behind them that runs their conversations.
//!
//! The daemon starts with the first window and stays. Only windows without flags that change the configuration
//! use it, so the hooks are trusted as a person does it, in the first window.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use tenure_testkit::pinned::Stat;
use tenure_testkit::real::{Real, RealWorld};
use tenure_testkit::{Agent, Cmd, poll};

use crate::state::{LONG, Left, called, handle, holder, hooked, in_conversation, kill9, sessions};

/// Longer than the program takes between two drawings of what it was typed.
const QUIET: Duration = Duration::from_millis(700);

const KEY: &str = "wp:041/WP03";

/// Windows in a tmux of the world's own.
struct Desk<'w> {
    world: &'w RealWorld,
    driver: &'w Agent,
    socket: String,
}

impl<'w> Desk<'w> {
    /// Codex with tenure's hooks, trusted, and commands that need no approval.
    #[track_caller]
    fn new(world: &'w RealWorld) -> Desk<'w> {
        let config = world.home().join(".codex/config.toml");
        let text = std::fs::read_to_string(&config).unwrap();
        let free = "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\n";
        std::fs::write(&config, format!("{free}{text}")).unwrap();
        let socket = world.scratch().join("tmux").to_string_lossy().into_owned();
        let desk = Desk {
            world,
            driver: world.driver(),
            socket,
        };
        // The server ends with its last window, and must not end between two of them.
        let stays = ["new-session", "-d", "-s", "stays", "sleep", "infinity"];
        desk.tmux(&stays).ok();
        let first = desk.open("trust", &world.project(), "");
        first.await_text("Hooks need review");
        first.await_quiet();
        first.press(&["Down"]);
        first.await_text("› 2. Trust all and continue");
        first.press(&["Enter"]);
        first.await_ready();
        first.type_line("/quit");
        first.await_end();
        desk
    }

    #[track_caller]
    fn tmux(&self, args: &[&str]) -> tenure_testkit::Output {
        let tmux = Cmd::new("tmux").args(["-S", &self.socket, "-f", "/dev/null"]);
        self.driver.run(tmux.args(args.iter().copied()))
    }

    /// A new window in a directory.
    #[track_caller]
    fn open(&self, name: &'static str, dir: &Path, args: &str) -> Window<'_> {
        let (line, dir) = (format!("exec codex {args}"), dir.to_str().unwrap());
        let size = ["-x", "150", "-y", "45"];
        let new = ["new-session", "-d", "-s", name, "-c", dir];
        let all: Vec<&str> = new.into_iter().chain(size).chain([line.as_str()]).collect();
        self.tmux(&all).ok();
        let shown = self
            .tmux(&["list-panes", "-t", name, "-F", "#{pane_pid}"])
            .ok();
        Window {
            desk: self,
            name,
            pid: shown.stdout.trim().parse().unwrap(),
        }
    }

    /// Processes of this world whose command line has this word.
    fn called(&self, word: &str) -> Vec<u32> {
        called(self.world, word)
    }

    #[track_caller]
    fn daemon(&self) -> u32 {
        let found = self.called("--managed-daemon");
        assert_eq!(found.len(), 1, "{found:?}");
        found[0]
    }
}

struct Window<'d> {
    desk: &'d Desk<'d>,
    name: &'static str,
    /// The wrapper.
    pid: u32,
}

impl Window<'_> {
    fn shown(&self) -> String {
        self.desk
            .tmux(&["capture-pane", "-p", "-t", self.name])
            .stdout
    }

    #[track_caller]
    fn await_text(&self, text: &str) {
        let end = Instant::now() + LONG;
        poll(LONG * 2, &format!("{} shows {text}", self.name), || {
            let shown = self.shown();
            let in_vain = Instant::now() > end;
            assert!(!in_vain, "{} shows no {text}:\n{shown}", self.name);
            shown.contains(text).then_some(())
        });
    }

    /// Waits until nothing is drawn any more: a key that follows too soon is taken for a part of a paste.
    #[track_caller]
    fn await_quiet(&self) {
        let (mut before, mut since) = (self.shown(), Instant::now());
        poll(LONG, &format!("{} is quiet", self.name), || {
            let now = self.shown();
            if now != before {
                (before, since) = (now, Instant::now());
            }
            (since.elapsed() > QUIET).then_some(())
        });
    }

    #[track_caller]
    fn press(&self, keys: &[&str]) {
        let send = ["send-keys", "-t", self.name].into_iter();
        let keys: Vec<&str> = send.chain(keys.iter().copied()).collect();
        self.desk.tmux(&keys).ok();
    }

    /// Types a line when the program waits for one, and sends it once it is shown.
    #[track_caller]
    fn type_line(&self, line: &str) {
        self.await_quiet();
        self.press(&["-l", line]);
        self.send(line);
    }

    /// Pastes lines, and sends them.
    #[track_caller]
    fn paste(&self, lines: &str) {
        self.await_quiet();
        let file = self.desk.world.scratch().join("pasted");
        std::fs::write(&file, lines).unwrap();
        self.desk
            .tmux(&["load-buffer", file.to_str().unwrap()])
            .ok();
        self.desk
            .tmux(&["paste-buffer", "-p", "-t", self.name])
            .ok();
        self.send(lines);
    }

    #[track_caller]
    fn send(&self, text: &str) {
        // A long line is wrapped.
        let begin: String = text.chars().take(30).collect();
        self.await_text(&begin);
        self.await_quiet();
        self.press(&["Enter"]);
    }

    #[track_caller]
    fn await_ready(&self) {
        self.await_text("for shortcuts");
    }

    /// Whether the session's process runs in this window: the program below the wrapper.
    #[track_caller]
    fn assert_is(&self, session: &Value) {
        let pid = session["process"]["pid"].as_u64().unwrap();
        let pid = u32::try_from(pid).unwrap();
        assert_ne!(pid, self.desk.daemon(), "{session:#}");
        let parent = Stat::read(pid).unwrap().parent;
        assert_eq!(parent, self.pid, "{session:#}");
    }

    /// The program itself.
    #[track_caller]
    fn program(&self) -> u32 {
        let session = live_at(self.desk.world, self.pid);
        u32::try_from(session["process"]["pid"].as_u64().unwrap()).unwrap()
    }

    #[track_caller]
    fn await_end(&self) {
        let end = Instant::now() + LONG;
        poll(LONG * 2, "the window is gone", || {
            if !Stat::runs(self.pid) {
                return Some(());
            }
            let (name, in_vain) = (self.name, Instant::now() > end);
            assert!(!in_vain, "{name} goes on:\n{}", self.shown());
            None
        });
    }
}

/// The live session whose process is the program below this wrapper.
#[track_caller]
fn live_at(world: &RealWorld, wrapper: u32) -> Value {
    poll(LONG, "the window is a session", || {
        sessions(world).into_iter().find(|session| {
            let pid = session["process"]["pid"].as_u64();
            let pid = pid.and_then(|pid| u32::try_from(pid).ok());
            let stat = pid.and_then(Stat::read);
            let is_known = session["ended_at"].is_null() && session["activity"] != "starting";
            is_known && stat.is_some_and(|stat| stat.parent == wrapper)
        })
    })
}

#[track_caller]
fn shown(world: &RealWorld, session: &Value) -> Value {
    let shown = world.tenure(&["show", handle(session), "--json"]).ok();
    shown.json()["session"].clone()
}

/// Which processes of the world `ps` shows as unmanaged; other tests' agents are there too.
#[track_caller]
fn unmanaged(desk: &Desk<'_>, pids: &[u32]) -> Vec<u32> {
    let ps = Cmd::new("tenure").args(["ps", "--json"]);
    let listed = desk.driver.run(ps.env("TENURE_PS_UNMANAGED", "true"));
    let listed = listed.ok().json();
    let all = listed["unmanaged"].as_array().unwrap().iter();
    let found = all.filter_map(|one| u32::try_from(one["pid"].as_u64()?).ok());
    found.filter(|pid| pids.contains(pid)).collect()
}

#[test]
#[ignore = "runs a real agent"]
fn a_window_that_is_quit_frees_what_its_conversation_held_at_once() {
    let world = hooked(Real::Codex);
    let desk = Desk::new(&world);
    let (daemon, update) = (desk.daemon(), desk.called("pid-update-loop")[0]);
    let window = desk.open("one", &world.project(), "");
    window.await_ready();
    let claimed = Left::new(&world, "claimed");
    let claims = claimed.by(&format!("tenure claim {KEY} --json"));
    window.paste(&format!("MOCK:bash {claims}"));
    let session = live_at(&world, window.pid);
    window.assert_is(&session);
    assert_eq!(
        claimed.json()["claim"]["holder"]["handle"],
        session["handle"]
    );
    poll(LONG, "the turn is over", || {
        (shown(&world, &session)["activity"] == "idle").then_some(())
    });
    let program = window.program();
    let known = [daemon, update, program, window.pid];
    assert_eq!(unmanaged(&desk, &known), [0; 0]);
    for helper in [daemon, update] {
        let adopted = world.tenure(&["adopt", &helper.to_string(), "--json"]);
        assert_eq!(adopted.code, 6, "{adopted}");
    }
    window.type_line("/quit");
    window.await_end();
    // The daemon keeps the conversation for a minute more.
    assert!(Stat::runs(daemon));
    let dead = shown(&world, &session);
    assert_eq!(dead["state"], "ended", "{dead:#}");
    assert_eq!(dead["end_kind"], "left", "{dead:#}");
    assert_eq!(holder(&world, KEY), Value::Null);
    let resume = world.tenure(&["resume", handle(&session), "--print"]).ok();
    let id = session["native_id"].as_str().unwrap();
    assert!(
        resume.stdout.contains(&format!("codex resume {id}")),
        "{resume}"
    );
    assert_eq!(unmanaged(&desk, &known), [0; 0]);
    // The same conversation in another window, while the daemon still has it.
    let again = desk.open("two", &world.project(), &format!("resume {id}"));
    again.await_ready();
    again.type_line("hello again");
    let resumed = live_at(&world, again.pid);
    assert_eq!(resumed["id"], session["id"]);
    assert_eq!(resumed["process"]["life"], 2);
    again.assert_is(&resumed);
    assert_eq!(desk.daemon(), daemon);
}

#[test]
#[ignore = "runs a real agent"]
fn a_turn_that_its_window_left_goes_on_and_is_over_with_its_end() {
    let world = hooked(Real::Codex);
    let desk = Desk::new(&world);
    let window = desk.open("one", &world.project(), "");
    window.await_ready();
    let claimed = Left::new(&world, "claimed");
    let claims = claimed.by(&format!("tenure claim {KEY}"));
    let wrote = Left::new(&world, "wrote");
    let script = format!(
        "MOCK:bash {claims}\nMOCK:hold here\nMOCK:bash {}",
        wrote.by("tenure whoami --json")
    );
    window.paste(&script);
    claimed.text();
    let session = live_at(&world, window.pid);
    kill9(window.program());
    window.await_end();
    let left = shown(&world, &session);
    assert_eq!(left["state"], "live", "{left:#}");
    let why = left["why"].as_str().unwrap();
    let expected = "no window; the daemon is finishing its turn";
    assert!(why.starts_with(expected), "{left:#}");
    assert_eq!(holder(&world, KEY), session["handle"]);
    // Lists say so, and so does `resume`, which names the process that really runs.
    let table = world.tenure(&["ps"]).ok().stdout;
    let row = table.lines().find(|row| row.starts_with(handle(&session)));
    let says = "no window (the daemon finishes its turn)";
    assert!(row.is_some_and(|row| row.contains(says)), "{table}");
    let refused = world.tenure(&["resume", handle(&session), "--print"]);
    let daemon = format!("the daemon (pid {})", desk.daemon());
    assert!(refused.stderr.contains(&daemon), "{refused}");
    world.mock().release("here");
    // What the turn still runs is its own session's.
    let me = wrote.json();
    assert_eq!(me["session"]["id"], session["id"], "{me:#}");
    let dead = poll(LONG, "the turn is over", || {
        Some(shown(&world, &session)).filter(|now| now["state"] != "live")
    });
    assert_eq!(dead["state"], "dead", "{dead:#}");
    assert_eq!(holder(&world, KEY), Value::Null);
}

/// The live sessions.
fn live(world: &RealWorld) -> Vec<Value> {
    let mut all = sessions(world);
    all.retain(|one| one["state"] == "live");
    all
}

/// Prompts in a window, and waits until its only session is at rest in another conversation than these.
#[track_caller]
fn goes_on(world: &RealWorld, window: &Window<'_>, before: &[&str]) -> Value {
    let end = Instant::now() + LONG;
    poll(LONG * 2, "the window is in another conversation", || {
        let all = live(world);
        let in_vain = Instant::now() > end;
        assert!(!in_vain, "{all:#?}\n{}", window.shown());
        let found = all.iter().find(|one| {
            let id = one["native_id"].as_str().unwrap_or_default();
            !before.contains(&id) && one["activity"] == "idle"
        });
        let found = found.cloned()?;
        // One window is one row, at every moment.
        assert_eq!(all.len(), 1, "{all:#?}");
        Some(found)
    })
}

#[test]
#[ignore = "runs a real agent"]
fn a_window_that_goes_on_to_a_new_conversation_and_back_is_one_session() {
    let world = hooked(Real::Codex);
    let desk = Desk::new(&world);
    let window = desk.open("one", &world.project(), "");
    window.await_ready();
    let claimed = Left::new(&world, "claimed");
    let claims = claimed.by(&format!("tenure claim {KEY} --json"));
    window.paste(&format!("MOCK:bash {claims}"));
    claimed.text();
    let first = goes_on(&world, &window, &[]);
    window.assert_is(&first);
    let t1 = first["native_id"].as_str().unwrap();
    window.type_line("/new");
    // In this worktree, or in one of its own.
    window.await_text("Use current Git worktree");
    window.await_quiet();
    window.press(&["Enter"]);
    window.await_ready();
    window.type_line("hello in another");
    let second = goes_on(&world, &window, &[t1]);
    assert_eq!(second["id"], first["id"], "{second:#}");
    window.assert_is(&second);
    assert_eq!(holder(&world, KEY), first["handle"]);
    let t2 = second["native_id"].as_str().unwrap();
    window.type_line("/resume");
    window.await_text("Type to search");
    window.await_quiet();
    // The other one is the newest in the list.
    window.press(&["-l", "MOCK"]);
    window.await_quiet();
    window.press(&["Enter"]);
    window.await_text("MOCK-TOOL-DONE");
    window.await_ready();
    window.type_line("hello again");
    let back = goes_on(&world, &window, &[t2]);
    assert_eq!(back["id"], first["id"], "{back:#}");
    assert_eq!(back["native_id"], t1);
    let lineage = shown(&world, &back)["native_ids"].clone();
    assert_eq!(lineage.as_array().map(Vec::len), Some(2), "{lineage:#}");
    window.type_line("/quit");
    window.await_end();
    assert_eq!(live(&world), Vec::<Value>::new());
    assert_eq!(holder(&world, KEY), Value::Null);
}

#[test]
#[ignore = "runs a real agent"]
fn two_windows_of_one_daemon_are_told_apart() {
    let world = hooked(Real::Codex);
    let desk = Desk::new(&world);
    // Both in one directory, and the second is the first to be prompted.
    let (one, two) = (
        desk.open("one", &world.project(), ""),
        desk.open("two", &world.project(), ""),
    );
    let mut conversations = Vec::new();
    for window in [&two, &one] {
        window.await_ready();
        let left = Left::new(&world, window.name);
        let line = left.by("echo $CODEX_THREAD_ID; tenure whoami --json");
        window.paste(&format!("MOCK:bash {line}"));
        let text = left.text();
        let (id, whoami) = text.split_once('\n').unwrap();
        let whoami: Value = serde_json::from_str(whoami).unwrap();
        assert_eq!(whoami["session"]["native_id"], id);
        window.assert_is(&whoami["session"]);
        conversations.push(id.to_owned());
    }
    let (of_two, of_one) = (&conversations[0], &conversations[1]);
    assert_ne!(of_one, of_two);
    poll(LONG, "both turns are over", || {
        let rests = |id: &str| in_conversation(&world, id)["activity"] == "idle";
        (rests(of_one) && rests(of_two)).then_some(())
    });
    kill9(one.program());
    one.await_end();
    assert_eq!(in_conversation(&world, of_one)["state"], "dead");
    assert_eq!(in_conversation(&world, of_two)["state"], "live");
    desk.tmux(&["kill-session", "-t", two.name]).ok();
    two.await_end();
    let closed = poll(LONG, "the closed window's conversation ends", || {
        Some(in_conversation(&world, of_two)).filter(|now| now["state"] != "live")
    });
    assert_eq!(closed["state"], "dead", "{closed:#}");
}
