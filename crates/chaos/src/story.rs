//! Handwritten histories, for tests of the checkers.

use super::history::{Call, History, Life, Sent};
use super::record::{CallAnswer, Claim, Grant, Op, RefusalRecord};

/// A history under construction.
#[derive(Debug, Default, Clone)]
pub struct Story {
    lives: Vec<Life>,
    calls: Vec<Call>,
}

impl Story {
    /// Adds a process that lives forever.
    pub fn life(&mut self, name: &str) -> usize {
        self.lives.push(Life {
            name: name.to_owned(),
            pid: u32::try_from(self.lives.len()).unwrap() + 100,
            start: 0,
            host: None,
            doomed: u64::MAX,
            gone: u64::MAX,
            sent: Vec::new(),
        });
        self.lives.len() - 1
    }

    /// It runs on this host.
    pub fn on(&mut self, life: usize, host: &str) {
        self.lives[life].host = Some(host.to_owned());
    }

    /// It was killed between these times.
    pub fn killed(&mut self, life: usize, doomed: u64, gone: u64) {
        self.lives[life].doomed = doomed;
        self.lives[life].gone = gone;
    }

    /// A child of it ran between these times.
    pub fn sent(&mut self, life: usize, from: u64, until: u64) {
        self.lives[life].sent.push(Sent {
            from,
            surely_from: from,
            surely_until: until,
            until,
        });
    }

    /// Adds a call and its answer at these times.
    pub fn call(
        &mut self,
        life: usize,
        session: &str,
        asked: u64,
        until: u64,
        op: Op,
        answer: Option<CallAnswer>,
    ) -> String {
        let tag = format!("{}#{}", self.lives[life].name, self.calls.len());
        self.calls.push(Call {
            life,
            tag: tag.clone(),
            session: Some(session.into()),
            op,
            asked,
            until,
            answer,
        });
        tag
    }

    pub fn history(&self) -> History {
        History::new(self.lives.clone(), self.calls.clone())
    }
}

pub fn register(native: &str) -> Op {
    Op::Register {
        native: native.into(),
    }
}

pub fn registered(session: &str, word: &str, regranted: &[(&str, u64)]) -> Option<CallAnswer> {
    Some(CallAnswer::Registered {
        session: session.into(),
        life: 1,
        word: word.into(),
        regranted: regranted
            .iter()
            .map(|(key, epoch)| ((*key).to_owned(), *epoch))
            .collect(),
    })
}

pub fn claim(keys: &[&str]) -> Op {
    Op::Claim(Claim {
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        ..Claim::default()
    })
}

pub fn grant(key: &str, epoch: u64) -> Grant {
    Grant {
        key: key.into(),
        epoch,
        holder: None,
        already_held: false,
        taken_from: None,
        also_ended: Vec::new(),
    }
}

pub fn granted(grants: &[Grant]) -> Option<CallAnswer> {
    Some(CallAnswer::Granted {
        grants: grants.to_vec(),
    })
}

pub fn guard(key: &str, epoch: u64) -> Op {
    Op::Guard {
        key: key.into(),
        epoch: Some(epoch),
    }
}

pub fn release(key: &str) -> Op {
    Op::Release {
        key: key.into(),
        epoch: None,
        done: false,
    }
}

pub fn takeover(key: &str) -> Op {
    Op::Takeover {
        key: key.into(),
        from: None,
        epoch: None,
    }
}

pub fn yes(epoch: u64) -> Option<CallAnswer> {
    Some(CallAnswer::Yes {
        epoch: Some(epoch),
        holder: None,
    })
}

pub fn held(key: &str, holder: &str, epoch: u64) -> Option<CallAnswer> {
    Some(CallAnswer::Refused(RefusalRecord {
        kind: "held".into(),
        key: Some(key.into()),
        holder: Some(holder.into()),
        epoch: Some(epoch),
        ..RefusalRecord::default()
    }))
}

pub fn refused(kind: &str, key: &str) -> Option<CallAnswer> {
    Some(CallAnswer::Refused(RefusalRecord {
        kind: kind.into(),
        key: Some(key.into()),
        ..RefusalRecord::default()
    }))
}
