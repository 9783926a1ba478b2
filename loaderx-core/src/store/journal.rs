//! The redo journal: said first, durably, then done, then dropped.
//!
//! A delete, and every step of a compaction, is a [`Plan`]. [`carry_out`] writes it to `journal.zr` and syncs it before
//! anything else is touched; from then on the plan will be done, by this process or by the next that opens the store
//! for writing. Doing it ([`redo`]) stores absolute values only, so it may be stopped and begun again at any point.

use std::sync::Arc;

use super::names;
use super::writer::Writer;
use crate::error::{Error, ErrorKind, Result};
use crate::format::check::CheckEntry;
use crate::format::journal::{JOURNAL_ENTRY_BYTES, JOURNAL_HEADER_BYTES, JournalEntry, JournalHeader};
use crate::format::{Header, Location, table_offset};
use crate::io::{Access, Directory, File};

/// Bytes are copied in pieces of this size.
const COPY_BYTES: usize = 4 << 20;

/// What is about to be done.
pub(super) struct Plan {
    pub(super) after: Header,
    pub(super) entries: Vec<JournalEntry>,
    /// Where the stored bytes of the entries' records are now, in the order of the entries, once for entries in a row
    /// with one location. Empty if the bytes are at their new places already.
    pub(super) data: Vec<Source>,
    /// Whether files are cut at the new frontier.
    pub(super) trim: bool,
}

/// A range of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) chunk: u16,
    pub(super) offset: u32,
    pub(super) length: u32,
}

/// Whether a failed plan will be done by whoever opens the store next.
pub(super) enum Failed {
    /// The journal was not complete: nothing has happened, and the handle may go on.
    Before(Error),
    /// Nobody but recovery can tell what the files hold.
    HalfWay(Error),
}

/// Writes the plan down, does it, and drops the journal.
pub(super) fn carry_out(writer: &mut Writer, plan: &Plan) -> Result<(), Failed> {
    if let Err(error) = write(writer, plan) {
        // An incomplete journal is nothing. One that may be complete although its sync has failed must go, or
        // it would be done later, when the store has moved on.
        return match drop_journal(writer, false) {
            Ok(()) => Err(Failed::Before(error)),
            Err(_) => Err(Failed::HalfWay(error)),
        };
    }
    let journal = match read(writer.directory.as_ref(), writer.header) {
        Ok(Found::Valid(journal)) => journal,
        Ok(_) => {
            return Err(Failed::HalfWay(
                Error::corrupt("the journal that was just written cannot be read back")
                    .at_path(writer.file(names::JOURNAL)),
            ));
        }
        Err(error) => return Err(Failed::HalfWay(error)),
    };
    redo(writer, &journal).map_err(Failed::HalfWay)
}

fn write(writer: &Writer, plan: &Plan) -> Result<()> {
    let path = writer.file(names::JOURNAL);
    let failed = |error| Error::io("write the journal", &path, error);
    let file = writer.directory.open(names::JOURNAL, Access::Create).map_err(failed)?;
    file.set_size(0).map_err(failed)?;
    let mut header = JournalHeader {
        before: writer.header,
        after: plan.after,
        entries: plan.entries.len() as u64,
        data: plan.data.iter().map(|source| u64::from(source.length)).sum(),
        trim: plan.trim,
        crc: 0,
    };
    let mut crc = crc32fast::Hasher::new();
    crc.update(JournalHeader::checked_part(&header.encode()));
    let mut at = JOURNAL_HEADER_BYTES as u64;
    for entries in plan.entries.chunks(COPY_BYTES / JOURNAL_ENTRY_BYTES) {
        let bytes: Vec<u8> = entries.iter().flat_map(JournalEntry::encode).collect();
        crc.update(&bytes);
        file.write_all_at(&bytes, at).map_err(failed)?;
        at += bytes.len() as u64;
    }
    let mut buffer = Vec::new();
    for source in coalesce(&plan.data) {
        let name = names::chunk(source.chunk);
        let chunk = writer
            .directory
            .open(&name, Access::Read)
            .map_err(|error| Error::io("open a chunk", writer.file(&name), error))?;
        for (offset, length) in pieces(u64::from(source.offset), source.length) {
            buffer.resize(length, 0);
            chunk.read_exact_at(&mut buffer, offset).map_err(|error| {
                Error::io("read records that are about to move", writer.file(&name), error)
            })?;
            crc.update(&buffer);
            file.write_all_at(&buffer, at).map_err(failed)?;
            at += length as u64;
        }
    }
    // The header last: until it is there, the file is no journal.
    header.crc = crc.finalize();
    file.write_all_at(&header.encode(), 0).map_err(failed)?;
    file.sync().map_err(failed)?;
    writer.sync_names()
}

/// A run of bytes that is longer than a `u32` counts.
struct Run {
    chunk: u16,
    offset: u32,
    length: u64,
}

/// Joins ranges that follow each other.
fn coalesce(sources: &[Source]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for source in sources {
        match runs.last_mut() {
            Some(run)
                if run.chunk == source.chunk
                    && u64::from(run.offset) + run.length == u64::from(source.offset) =>
            {
                run.length += u64::from(source.length);
            }
            _ => runs.push(Run {
                chunk: source.chunk,
                offset: source.offset,
                length: u64::from(source.length),
            }),
        }
    }
    runs
}

/// Divides a range into pieces of at most [`COPY_BYTES`].
fn pieces(start: u64, length: u64) -> impl Iterator<Item = (u64, usize)> {
    let step = COPY_BYTES as u64;
    (0..length.div_ceil(step)).map(move |i| {
        let left = length - i * step;
        (start + i * step, usize::try_from(left).map_or(COPY_BYTES, |left| left.min(COPY_BYTES)))
    })
}

/// Copies stored bytes to places in front of them that hold nothing that is needed.
pub(super) fn copy_directly(writer: &mut Writer, moves: &[(Source, Location)]) -> Result<()> {
    let mut buffer = Vec::new();
    let mut start = 0;
    while start < moves.len() {
        // As many moves as are one run on both sides.
        let mut end = start + 1;
        let mut length = u64::from(moves[start].0.length);
        while let Some((source, target)) = moves.get(end)
            && source.chunk == moves[start].0.chunk
            && u64::from(source.offset) == u64::from(moves[start].0.offset) + length
            && target.chunk == moves[start].1.chunk
            && u64::from(target.offset) == u64::from(moves[start].1.offset) + length
        {
            length += u64::from(source.length);
            end += 1;
        }
        let (source, target) = moves[start];
        let name = names::chunk(source.chunk);
        let from = writer
            .directory
            .open(&name, Access::Read)
            .map_err(|error| Error::io("open a chunk", writer.file(&name), error))?;
        let to = writer.chunk(target.chunk)?;
        for (offset, length) in pieces(0, length) {
            buffer.resize(length, 0);
            from.read_exact_at(&mut buffer, u64::from(source.offset) + offset)
                .map_err(|error| Error::io("read records that move", writer.file(&name), error))?;
            to.write_all_at(&buffer, u64::from(target.offset) + offset).map_err(|error| {
                Error::io("move records", writer.file(&names::chunk(target.chunk)), error)
            })?;
        }
        start = end;
    }
    writer.sync_chunks()
}

/// A journal that is complete and fits the store.
pub(super) struct Journal {
    header: JournalHeader,
    entries: Vec<JournalEntry>,
    file: Arc<dyn File>,
}

/// What there is of a journal.
pub(super) enum Found {
    /// No file, or an empty one.
    Nothing,
    /// It was not completed, or the store has moved on since: there is nothing to do.
    Void,
    /// It has to be done.
    Valid(Journal),
}

/// Reads and validates `journal.zr` against the store's header.
pub(super) fn read(directory: &dyn Directory, current: Header) -> Result<Found> {
    let path = directory.path().join(names::JOURNAL);
    let failed = |error| Error::io("read the journal", &path, error);
    let file = match directory.open(names::JOURNAL, Access::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(failed(error)),
    };
    let size = file.size().map_err(failed)?;
    if size == 0 {
        return Ok(Found::Nothing);
    }
    let mut bytes = [0; JOURNAL_HEADER_BYTES];
    if size < bytes.len() as u64 {
        return Ok(Found::Void);
    }
    file.read_exact_at(&mut bytes, 0).map_err(failed)?;
    let Ok(header) = JournalHeader::decode(&bytes) else { return Ok(Found::Void) };
    if header.file_bytes() != Some(size) {
        return Ok(Found::Void);
    }
    if !belongs(&header, current) {
        return Ok(Found::Void);
    }
    let mut crc = crc32fast::Hasher::new();
    crc.update(JournalHeader::checked_part(&bytes));
    let mut buffer = Vec::new();
    let mut each_piece = |start, length, what: &mut dyn FnMut(&[u8])| -> Result<()> {
        for (offset, length) in pieces(start, length) {
            buffer.resize(length, 0);
            file.read_exact_at(&mut buffer, offset).map_err(failed)?;
            what(&buffer);
        }
        Ok(())
    };
    let block = JOURNAL_HEADER_BYTES as u64;
    each_piece(block, size - block, &mut |piece| crc.update(piece))?;
    if crc.finalize() != header.crc {
        return Ok(Found::Void);
    }
    // Only of a journal that is whole are the entries kept. Pieces are a multiple of an entry long.
    let mut entries = Vec::new();
    each_piece(block, header.entries * JOURNAL_ENTRY_BYTES as u64, &mut |piece| {
        entries.extend(piece.as_chunks::<JOURNAL_ENTRY_BYTES>().0.iter().map(JournalEntry::decode));
    })?;
    let journal = Journal { header, entries, file };
    journal.validate(directory).map_err(|error| error.at_path(path))?;
    Ok(Found::Valid(journal))
}

/// Whether the store's header is one that doing this journal passes through.
fn belongs(journal: &JournalHeader, current: Header) -> bool {
    let between = Header { tail_chunk: journal.after.tail_chunk, ..journal.before };
    current == journal.before || current == journal.after || current == between
}

impl Journal {
    /// Refuses a journal that is whole and still asks for what no writer asks for.
    fn validate(&self, directory: &dyn Directory) -> Result<()> {
        let (before, after) = (&self.header.before, &self.header.after);
        if before.version != after.version
            || after.length > before.length
            || (after.tail_chunk, after.tail_offset) > (before.tail_chunk, before.tail_offset)
        {
            return Err(Error::corrupt("the journal makes the store larger or another version"));
        }
        if let Some(entry) = self.entries.iter().find(|entry| entry.index >= u64::from(after.length)) {
            return Err(Error::corrupt(format!(
                "the journal changes record {} of {}",
                entry.index, after.length
            )));
        }
        if self.header.data == 0 {
            return Ok(());
        }
        let mut sizes = std::collections::BTreeMap::new();
        let mut bytes = 0;
        for (_, location) in self.moves()? {
            let size = match sizes.get(&location.chunk) {
                Some(&size) => size,
                None => {
                    let name = names::chunk(location.chunk);
                    let size = directory.open(&name, Access::Read).and_then(|file| file.size());
                    size.map_err(|error| match error.kind() {
                        std::io::ErrorKind::NotFound => {
                            Error::corrupt(format!("the journal moves records into {name}, which is missing"))
                                .with_hint("put it back from a copy; or repair() puts the journal aside")
                        }
                        _ => Error::io("look at a chunk", directory.path().join(&name), error),
                    })?
                }
            };
            // Behind the end of the file, a move may go on where the one before it has ended: no gap is filled.
            sizes.insert(location.chunk, size.max(location.end()));
            if u64::from(location.offset) > size {
                return Err(Error::corrupt(format!(
                    "the journal moves a record to bytes {}..{} of chunk {}, which has {size}",
                    location.offset,
                    location.end(),
                    location.chunk
                )));
            }
            bytes += u64::from(location.stored_length);
        }
        if bytes != self.header.data {
            return Err(Error::corrupt(format!(
                "the journal holds {} bytes for records of {bytes}",
                self.header.data
            )));
        }
        Ok(())
    }

    /// Each range of moved bytes: its offset in the journal and its place in the store.
    fn moves(&self) -> Result<Vec<(u64, Location)>> {
        let mut at = JOURNAL_HEADER_BYTES as u64 + self.header.entries * JOURNAL_ENTRY_BYTES as u64;
        let mut moves = Vec::new();
        let mut last = None;
        for entry in &self.entries {
            if last == Some(entry.location) {
                continue;
            }
            last = Some(entry.location);
            let location = Location::decode(&entry.location, self.header.after.version)?;
            moves.push((at, location));
            at += u64::from(location.stored_length);
        }
        Ok(moves)
    }
}

/// Does what the journal says, makes it durable, and drops the journal.
pub(super) fn redo(writer: &mut Writer, journal: &Journal) -> Result<()> {
    if journal.header.data > 0 {
        move_data(writer, journal)?;
    }
    write_entries(writer, &journal.entries)?;
    writer.commit(journal.header.after)?;
    if let Some(checks) = &writer.checks {
        // Beside their table entries, which stay, checksums of removed records would pass for records.
        checks.truncate(u64::from(journal.header.after.length))?;
    }
    writer.sync()?;
    if journal.header.trim {
        trim(writer)?;
    }
    drop_journal(writer, true)
}

fn move_data(writer: &mut Writer, journal: &Journal) -> Result<()> {
    let path = writer.file(names::JOURNAL);
    let mut buffer = Vec::new();
    for (start, location) in journal.moves()? {
        let chunk = writer.chunk(location.chunk)?;
        for (offset, length) in pieces(0, u64::from(location.stored_length)) {
            buffer.resize(length, 0);
            journal
                .file
                .read_exact_at(&mut buffer, start + offset)
                .map_err(|error| Error::io("read the journal", &path, error))?;
            chunk.write_all_at(&buffer, u64::from(location.offset) + offset).map_err(|error| {
                Error::io("move records", writer.file(&names::chunk(location.chunk)), error)
            })?;
        }
    }
    Ok(())
}

/// Stores table entries and checks; neighbours in one write.
fn write_entries(writer: &mut Writer, entries: &[JournalEntry]) -> Result<()> {
    let consecutive = |a: &JournalEntry, b: &JournalEntry| a.index + 1 == b.index;
    for run in entries.chunk_by(consecutive).flat_map(|run| run.chunks(1 << 16)) {
        let Some(first) = run.first() else { continue };
        let bytes: Vec<u8> = run.iter().flat_map(|entry| entry.location).collect();
        writer
            .meta
            .write_all_at(&bytes, table_offset(first.index))
            .map_err(|error| Error::io("write the record table", writer.file(names::META), error))?;
        if let Some(checks) = &writer.checks {
            let checked: Vec<CheckEntry> = run.iter().map(|entry| entry.check).collect();
            checks.write_entries(first.index, &checked)?;
        }
    }
    Ok(())
}

/// Removes chunks past the frontier and cuts the tail chunk there.
fn trim(writer: &mut Writer) -> Result<()> {
    let header = writer.header;
    writer.forget_chunks();
    let directory = Arc::clone(&writer.directory);
    let listed = directory
        .names()
        .map_err(|error| Error::io("list the store's directory", directory.path(), error))?;
    for name in listed {
        if names::parse_chunk(&name).is_some_and(|chunk| chunk > header.tail_chunk) {
            directory
                .remove(&name)
                .map_err(|error| Error::io("remove an empty chunk", writer.file(&name), error))?;
        }
    }
    let tail = writer.chunk(header.tail_chunk)?;
    let name = names::chunk(header.tail_chunk);
    let failed = |error| Error::io("shorten the last chunk", directory.path().join(&name), error);
    if tail.size().map_err(failed)? > u64::from(header.tail_offset) {
        tail.set_size(u64::from(header.tail_offset)).map_err(failed)?;
    }
    writer.sync()?;
    writer.sync_names()
}

/// Makes the journal void, and unless another is to follow at once removes its file.
pub(super) fn drop_journal(writer: &Writer, remove: bool) -> Result<()> {
    let failed = |error| Error::io("drop the journal", writer.file(names::JOURNAL), error);
    let file = match writer.directory.open(names::JOURNAL, Access::Write) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    // Emptied durably before its name goes: a removed name can come back after a power cut, its content then not.
    file.set_size(0).map_err(failed)?;
    file.sync().map_err(failed)?;
    if remove {
        writer.directory.remove(names::JOURNAL).map_err(failed)?;
        writer.sync_names()?;
    }
    Ok(())
}

/// The error of a plan that has failed, and whether the handle is unusable from now on.
impl Failed {
    pub(super) fn into_error(self) -> (Error, bool) {
        match self {
            Self::Before(error) => (error, false),
            Self::HalfWay(error) => {
                let hint = "drop this handle and open the store for writing, which finishes what was begun";
                (error.with_hint(hint), true)
            }
        }
    }
}

/// The error of opening for reading while a journal waits.
pub(super) fn needs_recovery(directory: &dyn Directory) -> Error {
    Error::new(ErrorKind::NeedsRecovery, "an interrupted delete or compact has to be finished first")
        .at_path(directory.path().join(names::JOURNAL))
        .with_hint("nothing is lost; open the store once for writing, as `loaderx compact` does")
}
