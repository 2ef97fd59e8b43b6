//! The state in which a session leaves its worktree, stored so that a resumed session learns what changed.
//!
//! Stored after every tool that wrote a file or ran git, and at the end of a turn, when the session's own
//! commands have had their effect. A write that was announced and refused is forgotten: its time is set to the
//! beginning. A session that never wrote is skipped. *Crash*: the last stored state
//! counts; a file that was being written is not compared.

use crate::context::{Ctx, Stop};
use tenure_core::session::Session;
use tenure_core::time::Timestamp;
use tenure_core::worktree_changes::{WorktreeChanges, of_file, of_tree};
use tenure_core::write_conflict::{FileWrite, Tree};

/// How many files are checked.
const MAX_COUNT: usize = 20;

/// Stores the state of the worktree and of the files that the session wrote, if it changed.
pub fn leave(ctx: &mut Ctx<'_>, session: &Session) -> Result<(), Stop> {
    let Some(before) = ctx.tx.tree_of(session.id)? else {
        return Ok(());
    };
    let writes = ctx.tx.writes_of(session.id, MAX_COUNT)?;
    let mut paths: Vec<String> = writes.iter().map(|write| write.path.clone()).collect();
    paths.push(before.root.clone());
    ctx.look_at_files(&paths)?;
    for write in &writes {
        let stamp = ctx.file(&write.path)?.and_then(|file| file.stamp);
        if write.never_happened(stamp) {
            ctx.write_beat()?;
            let at = Timestamp(0);
            ctx.tx.note_write(&FileWrite {
                at,
                ..write.clone()
            })?;
        } else if stamp != write.stamp {
            ctx.write_beat()?;
            ctx.tx.stamp_write(session.id, &write.path, stamp)?;
        }
    }
    let Some(here) = ctx.file(&before.root)? else {
        return Ok(());
    };
    if here.head != before.head || here.branch != before.branch {
        ctx.write_beat()?;
        let tree = Tree {
            root: before.root,
            head: here.head,
            branch: here.branch,
            at: ctx.now.wall,
        };
        ctx.tx.set_tree(session.id, &tree)?;
    }
    Ok(())
}

/// What has changed since.
pub fn changes_since(ctx: &mut Ctx<'_>, session: &Session) -> Result<WorktreeChanges, Stop> {
    let Some(before) = ctx.tx.tree_of(session.id)? else {
        return Ok(WorktreeChanges::default());
    };
    let writes = ctx.tx.writes_of(session.id, MAX_COUNT)?;
    let mut paths: Vec<String> = writes.iter().map(|write| write.path.clone()).collect();
    paths.push(before.root.clone());
    ctx.look_at_files(&paths)?;
    let mut found = of_tree(&before, ctx.file(&before.root)?.as_ref());
    if found.gone.is_some() {
        return Ok(found);
    }
    for write in writes {
        let writer = last_writer_since(ctx, &write)?;
        let now = ctx.file(&write.path)?.and_then(|file| file.stamp);
        if let Some(fate) = of_file(write.stamp, now, writer) {
            let below = write.path.strip_prefix(&before.root);
            let name = below.map_or(write.path.as_str(), |name| name.trim_start_matches('/'));
            found.files.push((name.to_owned(), fate));
        }
    }
    Ok(found)
}

/// Who wrote the same file of this machine last, after this write.
fn last_writer_since(ctx: &mut Ctx<'_>, write: &FileWrite) -> Result<Option<String>, Stop> {
    let mut others = ctx.tx.writers(&write.path)?;
    others.retain(|other| other.session != write.session && other.at > write.at);
    others.sort_by_key(|other| std::cmp::Reverse(other.at));
    for other in others {
        let writer = ctx.session(other.session)?;
        if !ctx.is_elsewhere(&writer) {
            return Ok(Some(writer.handle.to_string()));
        }
    }
    Ok(None)
}
