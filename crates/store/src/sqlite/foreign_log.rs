//! The log of another program's database, put into a copy of that database.
//!
//! The format is SQLite's, which promises it for good (<https://sqlite.org/fileformat2.html#the_write_ahead_log>): a
//! header, then frames of one page each. A frame counts if its salts are the header's, the checksum of everything up to
//! it is right, and a commit follows or it is one. What comes after is an older log or a change that was cut off.

use std::collections::BTreeMap;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// How a log begins; the last bit says in which order its checksums read bytes.
const MAGIC: u32 = 0x377f_0682;

/// Puts the changes of a log that are committed into the bytes of its database. A log without a sound header has none.
pub(super) fn apply(database: &mut Vec<u8>, log: &[u8], most: u64) -> Result<(), String> {
    let Some(committed) = committed(log) else {
        return Ok(());
    };
    let length = u64::from(committed.pages) * committed.page_bytes as u64;
    if length > most {
        return Err(format!("with its log it is longer than {most} bytes"));
    }
    let length = usize::try_from(length).map_err(|error| error.to_string())?;
    database.resize(length, 0);
    for (number, page) in committed.changed {
        let at = (number as usize - 1) * committed.page_bytes;
        // A later commit may have made the database shorter.
        if let Some(place) = database.get_mut(at..at + committed.page_bytes) {
            place.copy_from_slice(page);
        }
    }
    Ok(())
}

/// What a log commits.
struct Committed<'a> {
    page_bytes: usize,
    /// How many pages the database has then.
    pages: u32,
    /// The newest content of each page that is in the log, by its number from 1.
    changed: BTreeMap<u32, &'a [u8]>,
}

fn committed(log: &[u8]) -> Option<Committed<'_>> {
    let (header, frames) = log.split_at_checked(HEADER_BYTES)?;
    let is_big = match word(header, 0)? ^ MAGIC {
        0 => false,
        1 => true,
        _ => return None,
    };
    let page_bytes = usize::try_from(word(header, 8)?).ok()?;
    if !page_bytes.is_power_of_two() || !(512..=65536).contains(&page_bytes) {
        return None;
    }
    let salts = header.get(16..24)?;
    let mut sum = Sum { is_big, at: (0, 0) };
    sum.add(header.get(..24)?);
    if !sum.is(header.get(24..32)?) {
        return None;
    }
    let mut found = Committed {
        page_bytes,
        pages: 0,
        changed: BTreeMap::new(),
    };
    let mut waiting = Vec::new();
    for frame in frames.chunks_exact(FRAME_HEADER_BYTES + page_bytes) {
        let (header, page) = frame.split_at(FRAME_HEADER_BYTES);
        let (number, pages) = (word(header, 0)?, word(header, 4)?);
        sum.add(&header[..8]);
        sum.add(page);
        if number == 0 || header.get(8..16)? != salts || !sum.is(header.get(16..24)?) {
            break;
        }
        waiting.push((number, page));
        if pages > 0 {
            found.pages = pages;
            found.changed.extend(waiting.drain(..));
        }
    }
    (found.pages > 0).then_some(found)
}

/// The big-endian number at a place.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(four.try_into().ok()?))
}

/// A checksum of everything so far.
struct Sum {
    is_big: bool,
    at: (u32, u32),
}

impl Sum {
    fn add(&mut self, bytes: &[u8]) {
        let read = if self.is_big {
            u32::from_be_bytes
        } else {
            u32::from_le_bytes
        };
        let (mut one, mut two) = self.at;
        for eight in bytes.chunks_exact(8) {
            let [a, b, c, d, e, f, g, h] = *eight else {
                continue;
            };
            one = one.wrapping_add(read([a, b, c, d])).wrapping_add(two);
            two = two.wrapping_add(read([e, f, g, h])).wrapping_add(one);
        }
        self.at = (one, two);
    }

    fn is(&self, written: &[u8]) -> bool {
        (word(written, 0), word(written, 4)) == (Some(self.at.0), Some(self.at.1))
    }
}
