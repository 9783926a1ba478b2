//! Reading beside the batch gather: one record, visits without a copy, lengths, advice.

use super::gather::Ahead;
use super::{Store, names};
use crate::codec;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Compression, Location};

impl Store {
    /// The content of one record.
    ///
    /// # Errors
    ///
    /// When the index is not below [`Store::len`] or stored bytes are damaged.
    pub fn get(&self, index: u64) -> Result<Vec<u8>> {
        self.gather_packed(&[index]).map(|(bytes, _)| bytes)
    }

    /// Replaces `out` by the decoded length in bytes of each record.
    ///
    /// # Errors
    ///
    /// When an index is not below [`Store::len`] or the table is damaged.
    pub fn lengths(&self, indices: &[u64], out: &mut Vec<u64>) -> Result<()> {
        out.clear();
        let (locations, _) = self.locate(indices)?;
        out.extend(locations.iter().map(|location| u64::from(location.decoded_length)));
        Ok(())
    }

    /// Calls `f(position, record)` for each index in turn, `position` being its place in `indices`.
    ///
    /// A raw record of a mapped store is lent from the mapping, without a copy; any other from a buffer that is
    /// used again for the next.
    ///
    /// # Errors
    ///
    /// The first error of `f`; when an index is not below [`Store::len`] (`f` is not called then at all) or stored
    /// bytes are damaged.
    pub fn visit(&self, indices: &[u64], mut f: impl FnMut(usize, &[u8]) -> Result<()>) -> Result<()> {
        let (locations, snapshot) = self.resolve(indices)?;
        let (mut scratch, mut content) = (Vec::new(), Vec::new());
        // What `f` does with a record hides the way of the next ones from memory only if they have been asked for.
        let mut ahead = Ahead::new(&snapshot, &locations);
        for (position, (&index, location)) in indices.iter().zip(locations.iter()).enumerate() {
            let stored = match ahead.next(position) {
                Some(stored) => stored,
                None => self.read_stored(&snapshot, index, location, &mut scratch)?,
            };
            self.check_stored(&snapshot, index, location, stored)?;
            f(position, self.decode(index, location, stored, &mut content)?)?;
        }
        Ok(())
    }

    /// The content of a record from its stored bytes, which it is or which are decoded into `content`.
    pub(super) fn decode<'a>(
        &self,
        index: u64,
        location: &Location,
        stored: &'a [u8],
        content: &'a mut Vec<u8>,
    ) -> Result<&'a [u8]> {
        if location.compression == Compression::Raw {
            return Ok(stored);
        }
        let length = location.decoded_length as usize;
        content.clear();
        content.try_reserve_exact(length).map_err(|error| {
            let error = Error::new(ErrorKind::LimitExceeded, format!("no memory for {length} bytes"))
                .caused_by(error);
            self.damaged(index, location, error)
        })?;
        let dictionary = self.dictionary_for(location).map_err(|error| error.for_record(index))?;
        codec::decompress(stored, dictionary, content, length)
            .map_err(|error| self.damaged(index, location, error))?;
        Ok(content)
    }

    /// Tells the operating system that these records will be read soon, so that it reads them from the disk in one go
    /// and ahead. Best effort: what cannot be advised is skipped.
    pub fn advise(&self, indices: &[u64]) {
        let Ok((locations, snapshot)) = self.resolve(indices) else { return };
        let ask = |first: &Location, end: u64| {
            if let Some(chunk) = snapshot.chunk_of(first) {
                chunk.will_need(u64::from(first.offset), end - u64::from(first.offset));
            }
        };
        // Neighbours on disk are asked for together: a call to the system costs as much as a small record.
        let mut run: Option<(&Location, u64)> = None;
        for location in locations.iter() {
            let start = u64::from(location.offset);
            let end = start + u64::from(location.stored_length);
            match &mut run {
                Some((first, run_end)) if first.chunk == location.chunk && *run_end == start => {
                    *run_end = end
                }
                _ => {
                    if let Some((first, run_end)) = run.replace((location, end)) {
                        ask(first, run_end);
                    }
                }
            }
        }
        if let Some((first, run_end)) = run {
            ask(first, run_end);
        }
    }

    /// The dictionary that a record's frame needs, if it needs one.
    pub(super) fn dictionary_for(&self, location: &Location) -> Result<Option<&codec::Dictionary>> {
        if location.compression != Compression::ZstdDict {
            return Ok(None);
        }
        match &self.dictionary {
            Some(dictionary) => Ok(Some(dictionary)),
            None => Err(Error::new(
                ErrorKind::DictionaryMismatch,
                "the record was compressed with a dictionary, and the store has none",
            )
            .at_path(self.file(names::DICTIONARY))
            .with_hint("put back the dict.zr that the store was written with")),
        }
    }

    /// Adds the place of a record to an error about its bytes.
    pub(super) fn damaged(&self, index: u64, location: &Location, error: Error) -> Error {
        error
            .at_path(self.file(&names::chunk(location.chunk)))
            .in_chunk(u32::from(location.chunk))
            .for_record(index)
            .at_offset(u64::from(location.offset))
    }

    /// An error of the operating system about the bytes of a record.
    pub(super) fn unreadable(&self, index: u64, location: &Location, error: std::io::Error) -> Error {
        let path = self.file(&names::chunk(location.chunk));
        let error = if error.kind() == std::io::ErrorKind::UnexpectedEof {
            Error::corrupt(format!(
                "a record is cut short: the file ends within its {} bytes",
                location.stored_length
            ))
            .at_path(path)
            .caused_by(error)
        } else {
            Error::io(format_args!("read {} bytes of a record", location.stored_length), path, error)
        };
        self.damaged(index, location, error)
    }
}
