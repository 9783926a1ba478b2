//! Stored bytes get their places: they are written behind the frontier, where nothing committed lies.

use std::sync::Arc;

use super::super::names;
use super::super::writer::Writer;
use super::encode::Part;
use crate::error::{Error, ErrorKind, Result};
use crate::format::check::CheckEntry;
use crate::format::{CHUNK_BYTES, Header, LOCATION_BYTES, Location, table_offset};
use crate::io::File;

/// Small records are collected up to this many bytes for each write: few system calls, and the bytes are still in the
/// cache when the kernel copies them.
const SLAB_BYTES: usize = 256 << 10;

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

    /// Writes the stored bytes and the table entries of some records.
    pub(super) fn place(&mut self, parts: &[Part<'_>]) -> Result<()> {
        let first = u64::from(self.header.length);
        let count = parts.iter().map(|part| part.pieces.len()).sum::<usize>();
        let mut entries = Vec::with_capacity(count * LOCATION_BYTES);
        let mut checks = Vec::with_capacity(count);
        for part in parts {
            for piece in &part.pieces {
                let stored = part.stored(piece);
                let location = Location {
                    compression: piece.compression,
                    decoded_length: narrow(piece.decoded_length())?,
                    ..self.reserve(narrow(stored.len())?)?
                };
                self.collect(stored)?;
                entries.extend(location.encode());
                checks.push(CheckEntry::new(&location, piece.crc));
            }
        }
        self.flush()?;
        let path = self.writer.file(names::META);
        self.writer
            .meta
            .write_all_at(&entries, table_offset(first))
            .map_err(|error| Error::io("write the record table", path, error))?;
        if let Some(file) = &self.writer.checks {
            file.write_entries(first, &checks)?;
        }
        Ok(())
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

    /// The next free place, in the next chunk if the record would reach the end of this one.
    fn reserve(&mut self, stored_length: u32) -> Result<Location> {
        if u64::from(self.header.tail_offset) + u64::from(stored_length) >= CHUNK_BYTES {
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
        }
        let location = Location {
            offset: self.header.tail_offset,
            stored_length,
            decoded_length: 0,
            chunk: self.header.tail_chunk,
            compression: crate::format::Compression::Raw,
        };
        self.header.tail_offset += stored_length;
        self.header.length += 1;
        Ok(location)
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

/// Lengths of records have been held against limits below 2^32.
fn narrow(length: usize) -> Result<u32> {
    u32::try_from(length).map_err(|_| Error::invalid(format!("a record of {length} bytes")))
}
