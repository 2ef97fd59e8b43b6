//! What sessions used, counted in their agents' transcripts while somebody looks.
//!
//! A transcript is read from where it was read last. A file that is absent or cannot be read counts nothing; one that
//! was written anew counts nothing until it is longer than what was read of it.

use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use tenure_agents::token_records::{self, TokenRecords};
use tenure_core::spend::{ReadMark, ReadTranscript};
use tenure_host::read;
use tenure_service::answer::Problem;
use tenure_service::view::SpendView;
use tenure_service::{Answer, UsageRequest, UsageSource};

use crate::open::Context;

/// Reads what is new in the transcripts of this machine, stores it, and adds everything up.
pub fn look(context: &mut Context, request: &UsageRequest) -> Result<Answer<SpendView>, Problem> {
    let sources = context.service().usage_sources(request.since)?.value;
    for source in sources {
        let found = new_records(&source);
        if !found.is_empty() {
            let session = source.session;
            context.service().count_usage(session, &found, request)?;
        }
    }
    Ok(context.service().usage(request)?)
}

/// What is new in a session's transcripts.
fn new_records(source: &UsageSource) -> Vec<ReadTranscript> {
    let Some(records) = token_records::of(source.agent.as_str()) else {
        return Vec::new();
    };
    let mut files: Vec<(String, PathBuf)> = Vec::new();
    for (conversation, file) in &source.files {
        files.extend(subagents(records, Path::new(file)));
        files.push((conversation.clone(), PathBuf::from(file)));
    }
    let new = files.into_iter().filter_map(|(name, file)| {
        let from = source.marks.get(&name).copied().unwrap_or_default();
        // A file that cannot be read counts nothing.
        read_from(records, name, &file, from).ok().flatten()
    });
    new.collect()
}

/// The transcripts of the subagents of a conversation, by their names.
fn subagents(records: &TokenRecords, transcript: &Path) -> Vec<(String, PathBuf)> {
    let Some(folder) = records.subagents else {
        return Vec::new();
    };
    let folder = transcript.with_extension("").join(folder);
    let files = fs_err::read_dir(folder).into_iter().flatten().flatten();
    let files = files.map(|entry| entry.path());
    let named = files.filter_map(|path| {
        let name = path.file_name()?.to_str()?.strip_suffix(".jsonl")?;
        Some((name.to_owned(), path.clone()))
    });
    named.collect()
}

/// The records of a file from a mark on; none if it has not grown.
fn read_from(
    records: &TokenRecords,
    source: String,
    file: &Path,
    from: ReadMark,
) -> io::Result<Option<ReadTranscript>> {
    let mut file = read::open(file)?;
    let length = file.metadata()?.len();
    if length <= from.end {
        return Ok(None);
    }
    let mut read = ReadTranscript {
        source,
        from,
        records: Vec::new(),
        end: from.end,
    };
    file.seek(SeekFrom::Start(from.last))?;
    let (mut lines, mut line) = (BufReader::new(file), Vec::new());
    let mut begin = from.last;
    loop {
        line.clear();
        let size = lines.read_until(b'\n', &mut line)? as u64;
        if !line.ends_with(b"\n") {
            // The rest is still being written.
            return Ok((read.end > from.end).then_some(read));
        }
        read.records.extend(records.record(&line, begin));
        begin += size;
        read.end = begin.max(from.end);
    }
}
