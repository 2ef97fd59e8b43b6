//! Tokens of the HTTP API.

use tenure_core::store::Store;
use tenure_core::time::Timestamp;
use tenure_core::token::{ApiToken, Scope, TokenName};

use super::sample::*;

pub fn tokens_are_of_their_owner(store: &mut dyn Store) {
    let name = |text: &str| TokenName::parse(text).unwrap();
    let token = |owner: &str, text: &str| ApiToken {
        owner: owner.into(),
        name: name(text),
        hash: format!("{owner} {text}"),
        scopes: [Scope::Read, Scope::Admin].into(),
        created_at: Timestamp(7),
    };
    let all = [token("a/1", "x"), token("a/1", "ci"), token("a/2", "ci")];
    write(store, |tx| {
        for one in &all {
            tx.insert_token(one).unwrap();
        }
    });
    conflict(store, |tx| tx.insert_token(&all[0]));
    read(store, |tx| {
        assert_eq!(tx.tokens("a/1").unwrap(), [all[1].clone(), all[0].clone()]);
        assert_eq!(
            tx.token("a/2", &name("ci")).unwrap().as_ref(),
            Some(&all[2])
        );
        assert_eq!(tx.token("a/2", &name("x")).unwrap(), None);
    });
    write(store, |tx| {
        assert!(tx.remove_token("a/1", &name("ci")).unwrap());
        assert!(!tx.remove_token("a/1", &name("ci")).unwrap());
    });
    read(store, |tx| {
        assert_eq!(tx.tokens("a/1").unwrap(), [all[0].clone()]);
        assert_eq!(tx.tokens("a/2").unwrap(), [all[2].clone()]);
    });
}
