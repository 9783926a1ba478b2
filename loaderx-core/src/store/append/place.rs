//! Stored bytes get their places: they are written behind the frontier, where nothing committed lies.

use std::sync::Arc;

use super::super::names;
use super::super::writer::Writer;
use super::encode::Part;
use super::records::Records;
use crate::error::{Error, ErrorKind, Result};
use crate::format::check::CheckEntry;
use crate::format::{CHUNK_BYTES, Compression, Header, LOCATION_BYTES, Location, table_offset};
use crate::io::File;

/// Small records are collected up to this many bytes for each write: few system calls, and the bytes are still in the
/// cache when the kernel copies them.
const SLAB_BYTES: usize = 256 << 10;

/// Packed records are written in pieces of about this many bytes, straight from the caller's memory.
const RUN_BYTES: usize = 256 << 10;

/// An append under way: everything past the writer's own header is not committed yet.
pub(super) struct Placing<'w> {
    writer: &'w mut Writer,
    /// The header that will be committed.
    header: Header,
    slab: Vec<u8>,
    /// Where the slab begins in the tail chunk.
    slab_offset: u64,
    /// The chunk that was the tail, and its length before.
    before: Option<(Arc<dyn File>, u64)>,
}

impl<'w> Placing<'w> {
    pub(super) fn new(writer: &'w mut Writer) -> Result<Self> {
        writer.append_begins()?;
        let header = writer.header;
        let tail = writer.chunk(header.tail_chunk)?;
        let size = tail.size().map_err(|error| {
            let path = writer.file(&names::chunk(header.tail_chunk));
            Error::io("look at the tail chunk", path, error)
        })?;
        let slab_offset = u64::from(header.tail_offset);
        // The memory of the append before: fresh memory would cost more than the copy into it.
        let mut slab = std::mem::take(&mut writer.slab);
        slab.clear();
        Ok(Self { writer, header, slab, slab_offset, before: Some((tail, size)) })
    }

    /// Writes records as they are, and their table entries.
    pub(super) fn place_raw(&mut self, records: Records<'_, '_>) -> Result<()> {
        let mut entries = Entries::after(self.header.length, records.slices.len());
        let mut run = records.packed.map(Run::new);
        for &record in records.slices {
            let length = narrow(record.len())?;
            if self.is_full_for(length) {
                self.write_run(run.as_mut())?;
                self.next_chunk()?;
            }
            let location = Location { decoded_length: length, ..self.reserve(length) };
            // Here and not earlier: the bytes are still in the cache when the kernel copies them.
            entries.push(&location, crc32fast::hash(record));
            match &mut run {
                Some(run) => {
                    run.waiting += record.len();
                    if run.waiting >= RUN_BYTES {
                        self.write_run(Some(run))?;
                    }
                }
                None => self.collect(record)?,
            }
        }
        self.write_run(run.as_mut())?;
        self.flush()?;
        self.write_entries(&entries)
    }

    /// Writes encoded records and their table entries.
    pub(super) fn place_encoded(&mut self, parts: &[Part<'_>]) -> Result<()> {
        let count = parts.iter().map(|part| part.pieces.len()).sum();
        let mut entries = Entries::after(self.header.length, count);
        for part in parts {
            for piece in &part.pieces {
                let stored = part.stored(piece);
                let length = narrow(stored.len())?;
                if self.is_full_for(length) {
                    self.next_chunk()?;
                }
                let location = Location {
                    compression: piece.compression,
                    decoded_length: narrow(piece.decoded_length())?,
                    ..self.reserve(length)
                };
                self.collect(stored)?;
                entries.push(&location, piece.crc);
            }
        }
        self.flush()?;
        self.write_entries(&entries)
    }

    fn write_entries(&self, entries: &Entries) -> Result<()> {
        let path = self.writer.file(names::META);
        self.writer
            .meta
            .write_all_at(&entries.table, table_offset(entries.first))
            .map_err(|error| Error::io("write the record table", path, error))?;
        match &self.writer.checks {
            Some(file) => file.write_entries(entries.first, &entries.checks),
            None => Ok(()),
        }
    }

    /// Makes the records part of the store, all at once.
    pub(super) fn commit(self) -> Result<()> {
        self.writer.slab = self.slab;
        self.writer.commit(self.header)?;
        self.writer.append_committed();
        Ok(())
    }

    /// Gives back the room that an append has taken that cannot be committed. Best effort: what stays is
    /// overwritten by the next append.
    pub(super) fn give_up(mut self) {
        if let Some((tail, size)) = self.before.take()
            && tail.size().is_ok_and(|now| now > size)
        {
            let _ = tail.set_size(size);
        }
    }

    /// Whether a record of `stored_length` bytes would reach the end of the tail chunk.
    fn is_full_for(&self, stored_length: u32) -> bool {
        u64::from(self.header.tail_offset) + u64::from(stored_length) >= CHUNK_BYTES
    }

    fn next_chunk(&mut self) -> Result<()> {
        self.flush()?;
        let next = u32::from(self.header.tail_chunk) + 1;
        if next >= self.header.version.max_chunks() {
            return Err(Error::new(
                ErrorKind::LimitExceeded,
                format!("the store's {next} chunks are full, more are not possible"),
            )
            .at_path(self.writer.directory.path()));
        }
        self.header.tail_chunk += 1;
        self.header.tail_offset = 0;
        self.slab_offset = 0;
        Ok(())
    }

    /// The next free place; there is room for it.
    fn reserve(&mut self, stored_length: u32) -> Location {
        let location = Location {
            offset: self.header.tail_offset,
            stored_length,
            decoded_length: 0,
            chunk: self.header.tail_chunk,
            compression: Compression::Raw,
        };
        self.header.tail_offset += stored_length;
        self.header.length += 1;
        location
    }

    /// Writes what waits of a run.
    fn write_run(&mut self, run: Option<&mut Run<'_>>) -> Result<()> {
        match run.map(Run::take) {
            Some(bytes) if !bytes.is_empty() => self.write(bytes),
            _ => Ok(()),
        }
    }

    fn collect(&mut self, stored: &[u8]) -> Result<()> {
        if stored.len() >= SLAB_BYTES {
            self.flush()?;
            return self.write(stored);
        }
        if self.slab.len() + stored.len() > SLAB_BYTES {
            self.flush()?;
        }
        self.slab.extend_from_slice(stored);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.slab.is_empty() {
            return Ok(());
        }
        let mut slab = std::mem::take(&mut self.slab);
        let result = self.write(&slab);
        slab.clear();
        self.slab = slab;
        result
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let chunk = self.header.tail_chunk;
        let file = self.writer.chunk(chunk)?;
        file.write_all_at(bytes, self.slab_offset).map_err(|error| {
            Error::io(
                format_args!("append {} bytes", bytes.len()),
                self.writer.file(&names::chunk(chunk)),
                error,
            )
            .in_chunk(u32::from(chunk))
            .at_offset(self.slab_offset)
        })?;
        self.slab_offset += bytes.len() as u64;
        Ok(())
    }
}

/// Packed records on their way to the file, from where the caller has them.
struct Run<'a> {
    rest: &'a [u8],
    /// Bytes at the start of the rest that have their place and are not written.
    waiting: usize,
}

impl<'a> Run<'a> {
    fn new(packed: &'a [u8]) -> Self {
        Self { rest: packed, waiting: 0 }
    }

    fn take(&mut self) -> &'a [u8] {
        let (bytes, rest) = self.rest.split_at(self.waiting);
        (self.rest, self.waiting) = (rest, 0);
        bytes
    }
}

/// Entries of the table and of the checks, for records from `first` on.
struct Entries {
    first: u64,
    table: Vec<u8>,
    checks: Vec<CheckEntry>,
}

impl Entries {
    fn after(length: u32, count: usize) -> Self {
        let table = Vec::with_capacity(count * LOCATION_BYTES);
        Self { first: u64::from(length), table, checks: Vec::with_capacity(count) }
    }

    fn push(&mut self, location: &Location, crc: u32) {
        self.table.extend(location.encode());
        self.checks.push(CheckEntry::new(location, crc));
    }
}

/// Lengths of records have been held against limits below 2^32.
fn narrow(length: usize) -> Result<u32> {
    u32::try_from(length).map_err(|_| Error::invalid(format!("a record of {length} bytes")))
}
