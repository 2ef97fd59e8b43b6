//! Tokens of the HTTP API: made and revoked by a person, checked by `tenure serve`.
//!
//! A token is for the machine and the user whose server it is used at. Its text is shown once and only its digest is
//! stored, so this module never sees it.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::hint::Hint;
use tenure_core::store::TxMode;
use tenure_core::time::Timestamp;
use tenure_core::token::{ApiToken, BROWSER, Scope, TokenName};

use crate::caller;
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::transact::{Reply, Service};

/// A token that may use the HTTP API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TokenView {
    pub name: String,
    /// What it allows: `read`, `logs`, `act`, `admin`.
    pub scopes: Vec<Scope>,
    pub created_at: Timestamp,
}

impl From<&ApiToken> for TokenView {
    fn from(token: &ApiToken) -> Self {
        Self {
            name: token.name.to_string(),
            scopes: token.scopes.iter().copied().collect(),
            created_at: token.created_at,
        }
    }
}

/// A token to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    pub name: TokenName,
    /// SHA-256 of its text.
    pub hash: String,
    pub scopes: BTreeSet<Scope>,
}

impl Service<'_> {
    /// Makes a token. `user` is the one on this machine who may use it.
    pub fn make_token(&mut self, user: &str, new: &NewToken) -> Reply<TokenView> {
        self.transact(TxMode::Write, |ctx| {
            let actor = person(ctx, "make a token")?;
            let owner = owner(ctx, user);
            if new.name.as_str() == BROWSER {
                return Err(Error::Usage {
                    what: format!("{BROWSER} is the name of every login of a browser"),
                    hint: Hint::step("choose another name"),
                }
                .into());
            }
            if ctx.tx.token(&owner, &new.name)?.is_some() {
                return Err(Error::Usage {
                    what: format!("there is a token named {} already", new.name),
                    hint: Hint::run("token", ["revoke", new.name.as_str()], "to remove it first"),
                }
                .into());
            }
            let token = ApiToken {
                owner,
                name: new.name.clone(),
                hash: new.hash.clone(),
                scopes: new.scopes.clone(),
                created_at: ctx.now.wall,
            };
            ctx.tx.insert_token(&token)?;
            let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.as_str()).collect();
            let evidence = format!("token {}: {}", token.name, scopes.join(", "));
            ctx.log(&NewEvent {
                actor,
                ..ctx.event(EventKind::TokenMade, None, "token", evidence)
            })?;
            Ok(TokenView::from(&token))
        })
    }

    /// The tokens of a user on this machine.
    pub fn tokens(&mut self, user: &str) -> Reply<Vec<TokenView>> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            let owner = owner(ctx, user);
            Ok(ctx.tx.tokens(&owner)?.iter().map(TokenView::from).collect())
        })
    }

    /// Makes a token worthless from now on.
    pub fn revoke_token(&mut self, user: &str, name: &TokenName) -> Reply<TokenView> {
        self.transact(TxMode::Write, |ctx| {
            let actor = person(ctx, "revoke a token")?;
            let owner = owner(ctx, user);
            let Some(token) = ctx.tx.token(&owner, name)? else {
                return Err(Error::NotFound {
                    what: format!("no token is named {name}"),
                    hint: Hint::run("token", ["list"], "to list them"),
                }
                .into());
            };
            ctx.tx.remove_token(&owner, name)?;
            let evidence = format!("token {name}");
            ctx.log(&NewEvent {
                actor,
                ..ctx.event(EventKind::TokenRevoked, None, "token", evidence)
            })?;
            Ok(TokenView::from(&token))
        })
    }

    /// The token whose text has this digest, if it may be used here.
    pub fn check_token(
        &mut self,
        user: &str,
        name: &TokenName,
        hash: &str,
    ) -> Reply<Option<TokenView>> {
        self.transact(TxMode::Read, |ctx| {
            let owner = owner(ctx, user);
            let found = ctx.tx.token(&owner, name)?;
            let found = found.filter(|token| token.hash == hash);
            Ok(found.as_ref().map(TokenView::from))
        })
    }

    /// Fails if an agent calls.
    pub fn only_person(&mut self, what: &'static str) -> Reply<()> {
        self.transact(TxMode::Read, |ctx| person(ctx, what).map(drop))
    }
}

/// The session that calls, if it is one; fails if it is an agent's, because models run what they read.
fn person(
    ctx: &mut Ctx<'_>,
    what: &'static str,
) -> Result<Option<tenure_core::id::SessionId>, Stop> {
    if caller::is_agents(ctx)? {
        return Err(Error::PersonOnly { what }.into());
    }
    Ok(caller::identify(ctx)?.map(|caller| caller.session.id))
}

/// A user of this machine. Another machine may give its number to somebody else.
fn owner(ctx: &Ctx<'_>, user: &str) -> String {
    format!("{}/{user}", ctx.observer.host.as_str())
}
