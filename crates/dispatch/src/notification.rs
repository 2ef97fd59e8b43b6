//! Posting a notification to a webhook: plain JSON, ntfy or Slack, signed if there is a secret.
//!
//! What a server refuses is not repeated; what it could not answer is, twice.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tenure_app::private_file;
use tenure_app::settings::notify::WebhookFormat;
use tenure_forges::Secret;
use tenure_host::pause;
use ureq::Agent;
use ureq::http::Request;

/// How long one attempt may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(6);
/// How long to wait before the second and the third attempt.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];

/// What is to be posted, as the sender of notifications writes it.
#[derive(Debug, Deserialize)]
struct Post {
    url: String,
    format: WebhookFormat,
    secret_file: Option<PathBuf>,
    title: String,
    body: String,
    event: String,
}

/// Posts a notification; tries again if the server cannot answer.
pub fn post(order: &[u8]) -> Result<(), String> {
    let post: Post = serde_json::from_slice(order).map_err(|error| error.to_string())?;
    let agent: Agent = Agent::config_builder()
        .timeout_global(Some(ANSWERS_WITHIN))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .build()
        .into();
    let mut pauses = PAUSES.into_iter();
    loop {
        match attempt(&agent, &post)? {
            Attempt::Done => return Ok(()),
            Attempt::Failed(why) => match pauses.next() {
                Some(length) => pause::sleep(length),
                None => return Err(why),
            },
        }
    }
}

enum Attempt {
    Done,
    /// Another attempt may succeed.
    Failed(String),
}

fn attempt(agent: &Agent, post: &Post) -> Result<Attempt, String> {
    let answer = match agent.run(request(post)?) {
        Ok(answer) => answer.status(),
        Err(error) => return Ok(Attempt::Failed(error.to_string())),
    };
    let why = format!("the server answered {answer}");
    match answer.as_u16() {
        200..300 => Ok(Attempt::Done),
        429 | 500.. => Ok(Attempt::Failed(why)),
        _ => Err(why),
    }
}

fn request(post: &Post) -> Result<Request<String>, String> {
    let text = match (post.title.as_str(), post.body.as_str()) {
        (title, "") => title.to_owned(),
        (title, body) => format!("{title}\n{body}"),
    };
    let (kind, body) = match post.format {
        WebhookFormat::Plain => ("application/json", post.event.clone()),
        WebhookFormat::Ntfy => ("text/plain; charset=utf-8", text),
        WebhookFormat::Slack => {
            // Slack reads these three as markup.
            let text = text.replace('&', "&amp;").replace('<', "&lt;");
            let text = text.replace('>', "&gt;");
            ("application/json", json!({ "text": text }).to_string())
        }
    };
    let mut request = Request::builder()
        .method("POST")
        .uri(&post.url)
        .header("Content-Type", kind);
    if let Some(file) = &post.secret_file {
        let secret = Secret::new(private_file::bytes(file)?);
        let secret = secret.ok_or_else(|| format!("{} is empty", file.display()))?;
        let signature = secret.sign(body.as_bytes());
        request = request.header("X-Tenure-Signature", format!("sha256={signature}"));
    }
    request.body(body).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(format: WebhookFormat, secret_file: Option<PathBuf>) -> Post {
        Post {
            url: "http://127.0.0.1:1/x".to_owned(),
            format,
            secret_file,
            title: "ann <waits>".to_owned(),
            body: "web".to_owned(),
            event: "{\"v\":1}".to_owned(),
        }
    }

    #[test]
    fn each_format_has_its_body() {
        let body = |format| request(&post(format, None)).unwrap().into_body();
        assert_eq!(body(WebhookFormat::Plain), "{\"v\":1}");
        assert_eq!(body(WebhookFormat::Ntfy), "ann <waits>\nweb");
        assert_eq!(
            body(WebhookFormat::Slack),
            "{\"text\":\"ann &lt;waits&gt;\\nweb\"}"
        );
    }

    #[test]
    fn a_secret_signs_the_body() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("secret");
        tenure_host::file::write_private(&file, b"Jefe").unwrap();
        let mut known = post(WebhookFormat::Plain, Some(file));
        // The second test of RFC 4231.
        known.event = "what do ya want for nothing?".to_owned();
        let signed = request(&known).unwrap();
        assert_eq!(
            signed.headers()["X-Tenure-Signature"],
            "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }
}
