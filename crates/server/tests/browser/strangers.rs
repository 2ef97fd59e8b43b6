//! Pages of others in the same browser, which a person may have open beside the dashboard.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::json;

use crate::support::{Browser, Member, SOON, Server, env};

const KEY: &str = "issue:acme/web#42";

/// Serves an empty page on a port of 127.0.0.1 of its own, as an agent's program could; answers its address.
fn other_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    // It ends with the test's process.
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            stream.set_read_timeout(Some(SOON)).ok();
            let mut request = [0; 4096];
            drop(stream.read(&mut request));
            let page = "<!doctype html><title>other</title>";
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                page.len()
            );
            drop(stream.write_all(format!("{head}{page}").as_bytes()));
        }
    });
    address
}

/// What a page can try. Answers what it could read.
const TRIES: &str = r"async ([server, key, holder]) => {
  const read = [];
  const claim = `${server}api/v1/claims/${encodeURIComponent(key)}/free`;
  const body = JSON.stringify({ reason: 'mine', holder, epoch: 1 });
  const attempt = async (url, options) => {
    try {
      const response = await fetch(url, { credentials: 'include', ...options });
      const text = await response.text();
      if (text) read.push(`${url}: ${text}`);
    } catch { }
  };
  for (const path of ['', 'api/v1/me', 'api/v1/sessions', 'api/v1/openapi.json', 'metrics']) {
    await attempt(server + path);
    await attempt(server + path, { mode: 'no-cors' });
  }
  for (const kind of ['text/plain', 'application/x-www-form-urlencoded', 'application/json']) {
    await attempt(claim, { method: 'POST', body, headers: { 'Content-Type': kind } });
    await attempt(claim, { method: 'POST', body, mode: 'no-cors', headers: { 'Content-Type': kind } });
  }
  await attempt(claim, { method: 'POST', body, headers: { 'Content-Type': 'application/json', Authorization: 'Bearer x' } });
  await new Promise((over) => {
    const events = new EventSource(`${server}api/v1/events`, { withCredentials: true });
    events.onopen = () => { read.push('the stream opened'); events.close(); over(); };
    events.onerror = () => { events.close(); over(); };
  });
  const frame = document.createElement('iframe');
  frame.src = server;
  document.body.append(frame);
  await new Promise((over) => { frame.onload = over; });
  let framed = null;
  try { framed = frame.contentDocument; } catch { }
  if (framed?.body?.innerText) read.push(`framed: ${framed.body.innerText}`);
  if (localStorage.length) read.push('a token in the storage');
  return read;
}";

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn f_v01_a_page_on_another_port_reads_nothing_and_changes_nothing() {
    let env = env();
    let member = Member::new(&env, "claude", "c1");
    member.claim(KEY);
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    browser.row_shows(&member.handle, KEY);
    let asked = json!([server.page(), KEY, member.handle]);
    let code = format!(
        "await page.goto({:?}); return await page.evaluate({TRIES}, {asked})",
        other_port()
    );
    assert_eq!(browser.run_in(1, &code), json!([]));
    let why = env.tenure(&["why", KEY, "--json"]).ok().json();
    assert_eq!(why["claim"]["holder"]["handle"], json!(member.handle));
}

#[test]
#[ignore = "needs Chromium: scripts/test --stage browser"]
fn f_v01_a_name_that_is_bound_to_this_machine_again_reaches_nothing() {
    let env = env();
    let member = Member::new(&env, "claude", "c1");
    let server = Server::new(&env);
    let mut browser = Browser::login(&env, &server);
    browser.row_shows(&member.handle, "claude");
    // The browser takes this name for 127.0.0.1, as after a rebinding.
    let evil = format!("http://rebound.example:{}/", server.port);
    let code = format!(
        "const response = await page.goto({evil:?}); const own = response.status();
         const asked = await page.evaluate(async () => {{
           const answers = await Promise.all(['app.js', 'api/v1/openapi.json', 'api/v1/sessions', 'healthz'].map((path) => fetch(path)));
           return answers.map((one) => one.status);
         }});
         return [own, ...asked, await page.evaluate(() => localStorage.length)]"
    );
    assert_eq!(
        browser.run_in(1, &code),
        json!([421, 421, 421, 421, 421, 0])
    );
}
