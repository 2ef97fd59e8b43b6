//! Which exit codes a verb can end with. What each means is in the one table of [`Exit`].

use crate::exit::Exit;

/// Every verb can end with these.
const ALWAYS: &[Exit] = &[Exit::DONE, Exit::USAGE, Exit::INTERNAL];

/// What a verb can end with besides, if it finds its caller or a session by name.
const USUAL: &[Exit] = &[Exit::NOT_FOUND, Exit::INVALID, Exit::STORE];

/// Verbs with other codes, which replace [`USUAL`].
const OWN: &[(&str, &[u8])] = &[
    ("ps", &[8]),
    ("top", &[1, 8]),
    ("locks", &[8]),
    ("config", &[8]),
    ("store", &[1, 4, 6, 8]),
    ("import", &[1, 6, 8]),
    ("gc", &[8]),
    ("doctor", &[6, 8]),
    ("export", &[1, 4, 8]),
    ("keeper", &[1, 7, 8]),
    ("who", &[3, 4, 6, 8, 9]),
    ("whoami", &[4, 5, 6, 8]),
    ("goto", &[1, 4, 6, 8]),
    ("alive", &[1, 4, 6, 8, 9]),
    ("wait", &[4, 6, 7, 8]),
    ("why", &[6, 8]),
    ("claim", &[1, 3, 4, 5, 6, 7, 8, 9, 125, 126, 127]),
    ("release", &[1, 3, 4, 5, 6, 8, 9]),
    ("renew", &[1, 4, 5, 6, 8]),
    ("guard", &[1, 3, 4, 5, 6, 8, 9]),
    ("handoff", &[1, 3, 4, 5, 6, 8, 9]),
    ("takeover", &[1, 3, 4, 5, 6, 8, 9]),
    ("register", &[4, 6, 8, 9]),
    ("adopt", &[4, 6, 8, 9]),
    ("resume", &[1, 3, 4, 6, 8, 9, 126, 127]),
    ("dismiss", &[1, 4, 6, 8]),
    ("end", &[1, 4, 5, 6, 8]),
    ("meta", &[1, 4, 6, 8]),
    ("tell", &[1, 4, 6, 8]),
    ("answer", &[1, 4, 6, 8]),
    ("verify", &[4, 5, 6, 8]),
    ("run", &[1, 125]),
    ("runs", &[1, 4, 6, 8, 125]),
    ("conversation", &[1, 3, 4, 5, 6, 7, 8]),
    ("dispatch", &[1, 4, 6, 7, 8, 9]),
    ("queue", &[1, 4, 6, 8]),
    ("mission", &[1, 3, 4, 5, 6, 8]),
    ("notify", &[1, 4]),
    ("watch", &[4, 6, 8]),
    ("transcript", &[1, 3, 4, 6, 7, 8]),
    ("lock", &[125, 126, 127]),
    ("install", &[1, 4, 6, 7, 8]),
    ("uninstall", &[4, 6, 7, 8]),
    ("hook", &[64]),
    ("statusline", &[]),
    ("serve", &[1, 8]),
    ("token", &[1, 4, 6, 8]),
    ("mcp", &[]),
    ("demo", &[1]),
    ("help", &[4]),
    ("man", &[4, 6]),
    ("schema", &[]),
    ("completions", &[]),
];

/// The code of hooks, which is not part of the table.
const OF_HOOKS: (Exit, &str) = (
    Exit::HOOK_USAGE,
    "usage error (2 would block the agent's tool call)",
);

/// The codes of a page, with their meanings; tenure's own page has all.
pub fn of(words: &[String]) -> Vec<(Exit, &'static str)> {
    let meanings = || Exit::TABLE.iter().copied().chain([OF_HOOKS]);
    let Some(verb) = words.first() else {
        return Exit::TABLE.to_vec();
    };
    let own = OWN.iter().find(|(name, _)| name == verb);
    let can_end_with = |code: Exit| {
        ALWAYS.contains(&code)
            || match own {
                Some((_, codes)) => codes.contains(&code.0),
                None => USUAL.contains(&code),
            }
    };
    let mut found: Vec<_> = meanings().filter(|(code, _)| can_end_with(*code)).collect();
    if verb == "hook" {
        found.retain(|(code, _)| *code != Exit::USAGE);
        let blocks = "the tool call is blocked, as the user configured";
        found.insert(1, (Exit::USAGE, blocks));
    }
    found.sort_by_key(|(Exit(code), _)| *code);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::JOBS;

    fn codes(verb: &str) -> Vec<u8> {
        let found = of(&[verb.to_owned()]);
        found.into_iter().map(|(Exit(code), _)| code).collect()
    }

    #[test]
    fn a_verb_has_the_codes_that_fit_it() {
        assert_eq!(codes("ps"), [0, 2, 8, 70]);
        assert_eq!(codes("alive"), [0, 1, 2, 4, 6, 8, 9, 70]);
        assert_eq!(codes("show"), [0, 2, 4, 6, 8, 70]);
        assert_eq!(codes("hook"), [0, 2, 64, 70]);
        assert_eq!(codes("lock"), [0, 2, 70, 125, 126, 127]);
        assert_eq!(of(&[]).len(), Exit::TABLE.len());
    }

    #[test]
    fn every_row_is_of_a_verb_and_every_code_has_a_meaning() {
        let verbs: Vec<&str> = JOBS
            .iter()
            .flat_map(|(_, verbs)| verbs.iter())
            .map(|(name, _)| *name)
            .collect();
        for (verb, own) in OWN {
            assert!(verbs.contains(verb), "there is no verb {verb}");
            for code in *own {
                assert!(codes(verb).contains(code), "{verb}: {code} has no meaning");
            }
        }
    }
}
