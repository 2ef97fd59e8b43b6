//! The timeline as one file for a browser: data, drawing and style in it, and nothing fetched from anywhere.
//!
//! The page's own policy lets only this script and this style run, each by its hash, and forbids every request. The data is
//! JSON in which `<` is escaped, so that nothing in a title or a reason can end its element.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::Digest;
use tenure_service::view::TimelineView;

/// What draws it. The dashboard serves the same two files.
pub const SCRIPT: &str = include_str!("../../../web/page/timeline.js");
pub const STYLE: &str = include_str!("../../../web/page/timeline.css");

/// What a file on its own needs besides.
const BODY_STYLE: &str = "body { font-family: system-ui, sans-serif; margin: 1rem; }";
const START: &str = r#"
timeline(document.getElementById("timeline"), JSON.parse(document.getElementById("data").textContent));
"#;

/// The whole file.
pub fn page(view: &TimelineView) -> String {
    let script = format!("{SCRIPT}{START}");
    let style = format!("{STYLE}{BODY_STYLE}");
    let data = serde_json::json!(view).to_string().replace('<', "\\u003c");
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'",
        hash(&script),
        hash(&style)
    );
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>tenure timeline</title>\n<style>{style}</style>\n</head>\n<body>\n\
         <main>\n<h1>Who held what</h1>\n<div id=\"timeline\">This page needs JavaScript.</div>\n</main>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n\
         <script type=\"module\">{script}</script>\n</body>\n</html>\n"
    )
}

/// The hash of an element's text as a policy names it.
fn hash(text: &str) -> String {
    let digest = sha2::Sha256::digest(text.as_bytes());
    format!("sha256-{}", STANDARD.encode(digest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::sample::{hold, view};

    /// The text between two others.
    fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
        let (_, rest) = text.split_once(from).expect(from);
        rest.split_once(to).expect(to).0
    }

    #[test]
    fn its_policy_names_exactly_its_script_and_its_style() {
        let page = page(&view(vec![hold(None)]));
        let policy = between(&page, "content=\"default", "\"");
        let script = between(&page, "<script type=\"module\">", "</script>");
        let style = between(&page, "<style>", "</style>");
        assert!(policy.contains(&format!("script-src '{}'", hash(script))));
        assert!(policy.contains(&format!("style-src '{}'", hash(style))));
        assert!(!policy.contains("unsafe") && !policy.contains("http"));
        for fetched in [
            "src=\"", "href=", "fetch(", "import ", "import(", "@import", "url(",
        ] {
            assert!(!page.contains(fetched), "{fetched}");
        }
    }

    #[test]
    fn f_v18_nothing_from_an_agent_ends_the_data() {
        let mut bad = hold(Some("taken"));
        bad.ended_why = Some("</script><script>alert(1)</script><!--".into());
        bad.key = "wp:<img src=x onerror=alert(1)>".into();
        let page = page(&view(vec![bad]));
        assert_eq!(page.matches("</script>").count(), 2);
        assert_eq!(page.matches("<img").count(), 0);
        let data = between(&page, "id=\"data\">", "</script>");
        let read: serde_json::Value = serde_json::from_str(data).expect("it is JSON");
        assert_eq!(
            read["holds"][0]["ended_why"],
            "</script><script>alert(1)</script><!--"
        );
    }
}
