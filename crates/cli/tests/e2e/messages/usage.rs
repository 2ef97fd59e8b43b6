//! What is said of a command line that cannot be read, and of names that do not exist.

use tenure_testkit::Env;

use super::page::Page;

pub(super) fn usage(env: &mut Env, page: &mut Page) {
    let out = env.agent("outsider");
    page.keep_spans();
    page.title("Mistyped");
    for line in [
        "tenure clain wp:1",
        "tenure xyzzy",
        "tenure mission joi",
        "tenure ps --limt 3",
        "tenure ps -z",
        "tenure whoami now",
        "tenure help clain",
        "tenure help xyzzy",
        "tenure man xyzzy",
    ] {
        page.run(&out, line);
    }
    page.title("Missing");
    for line in ["claim", "handoff wp:1", "lock", "register --pid"] {
        page.run(&out, &format!("tenure {line}"));
    }
    page.title("Malformed");
    for line in [
        "tenure ps --limit many",
        "tenure claim wp:1 --wait soon",
        "tenure claim wp:1 --wait -5s",
        "tenure claim 'wp:a b\tc'",
        "tenure claim wp:1 --request-id ''",
        "tenure claim nonsense:1",
        "tenure claim '#42'",
        "tenure wait claude --for lunch",
        "tenure adopt 0",
        "tenure register --pid 99999999",
        "tenure takeover wp:1 --reason ''",
        "tenure guard wp:1 --lost",
        "tenure log --since soon",
    ] {
        page.run(&out, line);
    }
    page.title("Not an item");
    for line in [
        "claim 42",
        "log '#'",
        "claim 'path:web:[a'",
        "conversation get claude 42",
    ] {
        page.run(&out, &format!("tenure {line}"));
    }
    page.title("Not a session");
    for line in ["show nobody", "wait nobody", "tell nobody hello"] {
        page.run(&out, &format!("tenure {line}"));
    }
}
