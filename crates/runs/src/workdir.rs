//! The directory that a run works in, and where its conversations are kept.
//!
//! *Invariant*: a place is never asked what it is. Code that ran there wrote its `.git`, and may have put a link where
//! its directory was. Its repository, branch and host are what the dispatcher made it from.

use std::path::Path;

use tenure_core::conversation::Home;
use tenure_core::dispatch::publish;
use tenure_core::id::AgentName;
use tenure_core::key::Key;
use tenure_core::session::Workdir;
use tenure_core::text;
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::{Begin, Planned};

use super::order::RunOrder;
use super::runner::Runner;
use super::wrap;
use tenure_app::conversation;
use tenure_app::open::Context;
use tenure_app::place::place;

impl RunOrder {
    /// A directory with its repository and branch.
    fn workdir(&self, item: &Key, dir: &str) -> Result<Workdir, Problem> {
        let Some(own) = &self.place else {
            return place(Path::new(dir));
        };
        Ok(Workdir {
            dir: dir.to_owned(),
            branch: Some(publish::branch(item, &own.repo)),
            repo: Some(own.repo.clone()),
        })
    }

    /// The home of conversations that begin in a directory.
    pub(super) fn home(
        &self,
        context: &Context,
        agent: &AgentName,
        item: &Key,
        dir: &str,
    ) -> Result<Home, Problem> {
        let Some(own) = &self.place else {
            return conversation::home(context, agent, item, Path::new(dir));
        };
        let address = own.code.origin.as_ref().or(own.code.url.as_ref());
        let home = Home {
            dir: dir.to_owned(),
            repo_host: address.and_then(|url| conversation::host_at(context, url, item)),
            ..conversation::here(context, agent, item)
        };
        if self.wrap.is_empty() {
            return Ok(home);
        }
        // The agent's own directory is inside.
        let inside = wrap::home(Path::new(dir));
        Ok(Home {
            user: wrap::USER.to_owned(),
            agent_home: Some(inside.to_string_lossy().into_owned()),
            ..home
        })
    }
}

impl Runner {
    pub(super) fn home(&self, dir: &str) -> Result<Home, Problem> {
        self.order.home(&self.context, &self.agent, &self.item, dir)
    }

    /// Whether a conversation is in another directory than the one that a dispatched run was given.
    /// Such a run never works in a person's directory.
    pub(super) fn is_outside(&self, home: &Home) -> Result<bool, Problem> {
        match &self.order.dir {
            Some(dir) if self.order.dispatched => {
                Ok(self.order.workdir(&self.item, dir)?.dir != home.dir)
            }
            _ => Ok(false),
        }
    }

    /// The directory that the agent works in: its conversation's, or else the named one, or else
    /// the caller's.
    pub(super) fn workdir(&self, planned: &Planned, begin: &Begin) -> Result<Workdir, Problem> {
        let named = self.order.dir.as_deref();
        let at = |dir: &str| self.order.workdir(&self.item, dir);
        let home = begin.resumed().and(planned.current.as_ref());
        let Some(current) = home else {
            return at(named.unwrap_or(&self.order.here));
        };
        if self.is_outside(&current.home)? {
            return at(named.unwrap_or(&self.order.here));
        }
        let home = &current.home.dir;
        let there = at(home).map_err(|_| {
            let message = format!("the conversation's directory {} is gone", text::name(home));
            let hint = Hint::step("add --fresh to start a new conversation");
            Problem::new(Class::NotFound, "not_found", message, hint)
        })?;
        if let Some(named) = named
            && at(named)?.dir != there.dir
        {
            let message = format!(
                "the {} conversation of {} is in {}, not in {}",
                self.agent,
                self.item,
                text::name(home),
                text::name(named)
            );
            let hint = Hint::step("omit --dir, or add --fresh to start a new conversation");
            return Err(Problem::new(Class::Invalid, "elsewhere", message, hint));
        }
        Ok(there)
    }
}
