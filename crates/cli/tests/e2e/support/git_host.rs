//! A Forgejo on loopback that keeps a repository: git over HTTP with a password, and what its API tells about pull
//! requests.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde_json::{Value, json};

/// The token of the dispatcher, and the header that git makes of it for the account `bot`.
pub const FETCH: (&str, &str) = ("fetch-t0ken", "Basic Ym90OmZldGNoLXQwa2Vu");
/// The token of a rule's `push`.
pub const PUSH: (&str, &str) = ("push-t0ken", "Basic Ym90OnB1c2gtdDBrZW4=");

/// A forge with the repository acme/web.
pub struct GitHost {
    pub url: String,
    /// The bare repository.
    pub repo: PathBuf,
    shared: Arc<Shared>,
    door: Option<JoinHandle<()>>,
}

struct Shared {
    root: PathBuf,
    /// The heads of pull requests as the API tells them.
    heads: Mutex<BTreeMap<u64, String>>,
    /// Requests of git, each with its credential.
    asked: Mutex<Vec<(String, String)>>,
    /// Whether requests of git are not answered.
    git_away: AtomicBool,
    is_closed: AtomicBool,
}

impl GitHost {
    /// Starts one that keeps its repositories below this directory.
    pub fn start(root: &Path) -> GitHost {
        let repo = root.join("acme/web.git");
        std::fs::create_dir_all(&repo).expect("the directory is ours");
        git(
            &repo,
            &["init", "--quiet", "--bare", "--initial-branch=main"],
        );
        git(&repo, &["config", "http.receivepack", "true"]);
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let shared = Arc::new(Shared {
            root: root.to_owned(),
            heads: Mutex::default(),
            asked: Mutex::default(),
            git_away: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
        });
        let own = Arc::clone(&shared);
        let door = std::thread::spawn(move || serve(&listener, &own));
        GitHost {
            url,
            repo,
            shared,
            door: Some(door),
        }
    }

    /// Makes a commit with this file and puts a ref on it; returns the commit.
    pub fn commit(&self, name: &str, file: &str, text: &str) -> String {
        let parent = git_maybe(&self.repo, &["rev-parse", "--quiet", "--verify", name]);
        let base = git_maybe(&self.repo, &["rev-parse", "--quiet", "--verify", "main"]);
        let parent = parent.or(base);
        let blob = git_with(&self.repo, &["hash-object", "-w", "--stdin"], text);
        let mut tree = match &parent {
            Some(parent) => git(&self.repo, &["ls-tree", parent]),
            None => String::new(),
        };
        tree = tree
            .lines()
            .filter(|line| !line.ends_with(&format!("\t{file}")))
            .map(|line| format!("{line}\n"))
            .collect();
        tree.push_str(&format!("100644 blob {blob}\t{file}\n"));
        let tree = git_with(&self.repo, &["mktree"], &tree);
        let mut words = vec!["commit-tree", &tree, "-m", "change"];
        if let Some(parent) = &parent {
            words.extend(["-p", parent]);
        }
        let commit = git(&self.repo, &words);
        git(&self.repo, &["update-ref", name, &commit]);
        commit
    }

    /// The same with the file in folders.
    pub fn commit_below(&self, name: &str, folder: &str, file: &str, text: &str) {
        let blob = git_with(&self.repo, &["hash-object", "-w", "--stdin"], text);
        let mut entry = format!("100644 blob {blob}\t{file}\n");
        for part in folder.rsplit('/') {
            let tree = git_with(&self.repo, &["mktree"], &entry);
            entry = format!("040000 tree {tree}\t{part}\n");
        }
        let before = git(&self.repo, &["ls-tree", name]);
        let tree = git_with(&self.repo, &["mktree"], &format!("{before}\n{entry}"));
        let parent = git(&self.repo, &["rev-parse", name]);
        let words = ["commit-tree", &tree, "-m", "change", "-p", &parent];
        let commit = git(&self.repo, &words);
        git(&self.repo, &["update-ref", name, &commit]);
    }

    /// The head of a pull request, for git and for the API.
    pub fn push_pull(&self, number: u64, text: &str) -> String {
        let commit = self.commit(&format!("refs/pull/{number}/head"), "change", text);
        self.tell_head(number, &commit);
        commit
    }

    /// What the API tells about a pull request from now on.
    pub fn tell_head(&self, number: u64, head: &str) {
        let mut heads = self.shared.heads.lock().expect("nobody panicked");
        heads.insert(number, head.to_owned());
    }

    /// From now on requests of git are not answered, or are again.
    pub fn set_git_away(&self, is_away: bool) {
        self.shared.git_away.store(is_away, Ordering::SeqCst);
    }

    /// What git asked for so far, each with its credential; empty where it had none.
    pub fn asked(&self) -> Vec<(String, String)> {
        self.shared.asked.lock().expect("nobody panicked").clone()
    }
}

impl Drop for GitHost {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Ordering::SeqCst);
        // Wakes the listener.
        TcpStream::connect(self.url.trim_start_matches("http://")).ok();
        if let Some(door) = self.door.take() {
            door.join().ok();
        }
    }
}

fn serve(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.is_closed.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            answer(&stream, &shared).ok();
            stream.shutdown(Shutdown::Both).ok();
        });
    }
}

struct Request {
    method: String,
    path: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl Request {
    fn read(stream: &TcpStream) -> std::io::Result<Request> {
        let mut reader = BufReader::new(stream);
        let mut first = String::new();
        reader.read_line(&mut first)?;
        let mut words = first.split_whitespace().map(str::to_owned);
        let (method, path) = (words.next(), words.next());
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim().split_once(':') else {
                break;
            };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let length = headers
            .get("content-length")
            .and_then(|text| text.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body)?;
        Ok(Request {
            method: method.unwrap_or_default(),
            path: path.unwrap_or_default(),
            headers,
            body,
        })
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

fn answer(mut stream: &TcpStream, shared: &Shared) -> std::io::Result<()> {
    let request = Request::read(stream)?;
    if request.path.starts_with("/api/") {
        let (status, body) = api(&request.path, shared);
        let body = body.to_string();
        let length = body.len();
        return write!(
            stream,
            "HTTP/1.1 {status} x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
    }
    if shared.git_away.load(Ordering::SeqCst) {
        return Ok(());
    }
    let credential = request.header("authorization").to_owned();
    let is_push = request.path.contains("receive-pack");
    let may = credential == PUSH.1 || credential == FETCH.1 && !is_push;
    let line = format!("{} {}", request.method, request.path);
    let mut asked = shared.asked.lock().expect("nobody panicked");
    asked.push((line, credential));
    drop(asked);
    if !may {
        return write!(
            stream,
            "HTTP/1.1 401 x\r\nConnection: close\r\nWWW-Authenticate: Basic realm=\"git\"\r\nContent-Length: 0\r\n\r\n"
        );
    }
    let (head, body) = backend(&request, shared)?;
    let status = head
        .lines()
        .find_map(|line| line.strip_prefix("Status: "))
        .unwrap_or("200 OK");
    write!(
        stream,
        "HTTP/1.1 {status}\r\nConnection: close\r\n{head}\r\n\r\n"
    )?;
    stream.write_all(&body)
}

/// Runs git's own program for this.
fn backend(request: &Request, shared: &Shared) -> std::io::Result<(String, Vec<u8>)> {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let mut child = plain_git()
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", &shared.root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REMOTE_USER", "bot")
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("REQUEST_METHOD", &request.method)
        .env("CONTENT_TYPE", request.header("content-type"))
        .env("CONTENT_LENGTH", request.body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", request.header("content-encoding"))
        .env("GIT_PROTOCOL", request.header("git-protocol"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(&request.body)?;
    drop(input);
    let output = child.wait_with_output()?.stdout;
    let end = output.windows(4).position(|at| at == b"\r\n\r\n");
    let end = end.unwrap_or(output.len());
    let head = String::from_utf8_lossy(&output[..end]).into_owned();
    let body = output.get(end + 4..).unwrap_or_default().to_vec();
    Ok((head, body))
}

fn api(path: &str, shared: &Shared) -> (u16, Value) {
    let path = path.trim_start_matches("/api/v1");
    if path == "/user" {
        return (200, json!({"id": 9, "login": "bot"}));
    }
    if path.ends_with("/permission") {
        return (200, json!({"permission": "write"}));
    }
    let number = path.strip_prefix("/repos/acme/web/pulls/");
    let number = number.and_then(|number| number.parse().ok());
    let heads = shared.heads.lock().expect("nobody panicked");
    match number.and_then(|number: u64| heads.get(&number)) {
        Some(head) => (
            200,
            json!({
                "user": {"id": 3, "login": "alice"}, "state": "open", "draft": false,
                "head": {"ref": "fix", "sha": head, "repo": {"full_name": "acme/web"}},
                "base": {"ref": "main"},
            }),
        ),
        None => (404, json!({"message": "not found"})),
    }
}

fn plain_git() -> Command {
    let mut command = Command::new("git");
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "Test")
        .env("GIT_AUTHOR_EMAIL", "test@example.invalid")
        .env("GIT_COMMITTER_NAME", "Test")
        .env("GIT_COMMITTER_EMAIL", "test@example.invalid");
    command
}

/// Runs git in a directory, independent of any configuration; what it printed.
#[track_caller]
pub fn git(dir: &Path, args: &[&str]) -> String {
    git_maybe(dir, args).unwrap_or_else(|| panic!("git {} in {}", args.join(" "), dir.display()))
}

/// The same where git may fail.
pub fn git_maybe(dir: &Path, args: &[&str]) -> Option<String> {
    let output = plain_git()
        .args(args)
        .current_dir(dir)
        .output()
        .expect("git can be run");
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

fn git_with(dir: &Path, args: &[&str], input: &str) -> String {
    let mut child = plain_git()
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("git can be run");
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(input.as_bytes()).expect("git reads it");
    drop(stdin);
    let output = child.wait_with_output().expect("git ends");
    assert!(output.status.success(), "git {}", args.join(" "));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
