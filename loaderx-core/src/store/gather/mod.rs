//! Batch gather: records at any indices into memory of the caller.
//!
//! Two stages. [`resolve`] turns all indices into validated locations; then each record is copied ([`copy`]) or
//! decoded straight into its row ([`rows`]), while the lines of records further on are already on their way
//! ([`ahead`]).

mod ahead;
mod copy;
mod resolve;
mod rows;

use std::mem::MaybeUninit;

use super::region::Region;
use super::snapshot::Snapshot;
use super::verdict::Verdict;
use super::{Store, names};
use crate::codec;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Compression, Location};

pub(super) use ahead::Ahead;

impl Store {
    /// Gathers records of `record_len` bytes each into `dst`, one after the other.
    ///
    /// Returns `dst` as initialised bytes: `Ok` is the proof that every byte was written.
    ///
    /// # Errors
    ///
    /// When `dst` is not `indices.len() * record_len` bytes long, an index is not below [`Store::len`], a
    /// record has another length, or stored bytes are damaged.
    pub fn gather_fixed<'a>(
        &self,
        indices: &[u64],
        record_len: usize,
        dst: &'a mut [MaybeUninit<u8>],
    ) -> Result<&'a mut [u8]> {
        if indices.len().checked_mul(record_len) != Some(dst.len()) {
            return Err(Error::invalid(format!(
                "{} records of {record_len} bytes do not fill a destination of {} bytes",
                indices.len(),
                dst.len()
            )));
        }
        self.gather_rows(indices, |_| record_len, dst)
    }

    /// Gathers record i into `dst[offsets[i]..offsets[i + 1]]`.
    ///
    /// Returns `dst` as initialised bytes: `Ok` is the proof that every byte was written.
    ///
    /// # Errors
    ///
    /// When the offsets are not `indices.len() + 1` ascending ones from 0 to `dst.len()`, an index is not below
    /// [`Store::len`], a record has another length than its place, or stored bytes are damaged.
    pub fn gather_at<'a>(
        &self,
        indices: &[u64],
        offsets: &[usize],
        dst: &'a mut [MaybeUninit<u8>],
    ) -> Result<&'a mut [u8]> {
        let ends = offsets.first() == Some(&0) && offsets.last() == Some(&dst.len());
        if !ends || offsets.len() != indices.len() + 1 || !offsets.is_sorted() {
            return Err(Error::invalid(format!(
                "{} offsets do not divide a destination of {} bytes into one place for each of {} indices",
                offsets.len(),
                dst.len(),
                indices.len()
            ))
            .with_hint("give one offset more than indices, ascending, the first 0, the last the length"));
        }
        self.gather_rows(indices, |i| offsets[i + 1] - offsets[i], dst)
    }

    /// Gathers records one after the other; returns the bytes and `indices.len() + 1` offsets.
    ///
    /// # Errors
    ///
    /// When an index is not below [`Store::len`], stored bytes are damaged, or the records do not fit into memory.
    pub fn gather_packed(&self, indices: &[u64]) -> Result<(Vec<u8>, Vec<u64>)> {
        let (locations, snapshot) = self.resolve(indices)?;
        let mut offsets = Vec::with_capacity(indices.len() + 1);
        let mut end = 0;
        offsets.push(end);
        for location in locations.iter() {
            end += u64::from(location.decoded_length);
            offsets.push(end);
        }
        let length = usize::try_from(end).unwrap_or(usize::MAX);
        let bytes = rows::fill_vec(length, |dst| self.copy_rows(&snapshot, indices, &locations, dst))?;
        Ok((bytes, offsets))
    }

    fn gather_rows<'a>(
        &self,
        indices: &[u64],
        room: impl Fn(usize) -> usize,
        dst: &'a mut [MaybeUninit<u8>],
    ) -> Result<&'a mut [u8]> {
        let (locations, snapshot) = self.resolve(indices)?;
        for (i, (&index, location)) in indices.iter().zip(locations.iter()).enumerate() {
            if location.decoded_length as usize != room(i) {
                return Err(Error::new(
                    ErrorKind::SchemaMismatch,
                    format!(
                        "the record has {} bytes, its place in the batch {}",
                        location.decoded_length,
                        room(i)
                    ),
                )
                .at_path(self.path())
                .for_record(index));
            }
        }
        self.copy_rows(&snapshot, indices, &locations, dst)
    }

    /// The second stage: every record into its row of `dst`, which is as long as all of them together.
    fn copy_rows<'a>(
        &self,
        snapshot: &Snapshot,
        indices: &[u64],
        locations: &[Location],
        dst: &'a mut [MaybeUninit<u8>],
    ) -> Result<&'a mut [u8]> {
        let mut ahead = Ahead::new(snapshot, locations);
        let mut scratch = Vec::new();
        rows::fill(
            dst,
            locations.len(),
            |i| locations[i].decoded_length as usize,
            |i, row| {
                let mapped = ahead.next(i);
                self.copy_row(snapshot, indices[i], &locations[i], mapped, row, &mut scratch)
            },
        )
    }

    #[inline]
    fn copy_row<'a>(
        &self,
        snapshot: &Snapshot,
        index: u64,
        location: &Location,
        mapped: Option<&[u8]>,
        row: &'a mut [MaybeUninit<u8>],
        scratch: &mut Vec<u8>,
    ) -> Result<&'a mut [u8]> {
        let raw = location.compression == Compression::Raw;
        let stored = match mapped {
            Some(stored) => stored,
            // Read straight into the row, where nothing needs to see the bytes before.
            None if raw && !self.checked => {
                let chunk = self.chunk_of(snapshot, index, location)?;
                let row = rows::zeroed(row);
                chunk
                    .read_exact(row, u64::from(location.offset))
                    .map_err(|error| self.unreadable(index, location, error))?;
                return Ok(row);
            }
            None => self.read_stored(snapshot, index, location, scratch)?,
        };
        self.check_stored(snapshot, index, location, stored)?;
        if raw {
            return Ok(copy::copy(stored, row));
        }
        let mut decoded = rows::Decoded::into(row);
        let length = location.decoded_length as usize;
        let dictionary = self.dictionary_for(location).map_err(|error| error.for_record(index))?;
        codec::decompress(stored, dictionary, &mut decoded, length)
            .map_err(|error| self.damaged(index, location, error))?;
        decoded.finish()
    }

    /// The stored bytes of a record that is not mapped, read into `scratch`.
    pub(super) fn read_stored<'a>(
        &self,
        snapshot: &Snapshot,
        index: u64,
        location: &Location,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8]> {
        // Also says that the chunk holds all of the record, so the buffer is never longer than a file.
        let chunk = self.chunk_of(snapshot, index, location)?;
        scratch.resize(location.stored_length as usize, 0);
        chunk
            .read_exact(scratch, u64::from(location.offset))
            .map_err(|error| self.unreadable(index, location, error))?;
        Ok(scratch)
    }

    /// Compares stored bytes with their checksum, if reads are checked and there is one.
    #[inline]
    pub(super) fn check_stored(
        &self,
        snapshot: &Snapshot,
        index: u64,
        location: &Location,
        stored: &[u8],
    ) -> Result<()> {
        if !self.checked {
            return Ok(());
        }
        let check = snapshot.check(index).map_err(|error| {
            Error::io("read the checks", self.file(names::CHECKS), error).for_record(index)
        })?;
        match snapshot.judge(index, location, check, crc32fast::hash(stored)) {
            Verdict::Damaged(why) => Err(self.damaged(index, location, Error::corrupt(why))),
            Verdict::Sound | Verdict::Unknown => Ok(()),
        }
    }

    /// The open chunk of a resolved record.
    pub(super) fn chunk_of<'a>(
        &self,
        snapshot: &'a Snapshot,
        index: u64,
        location: &Location,
    ) -> Result<&'a Region> {
        match snapshot.chunk_of(location) {
            Some(chunk) => Ok(chunk),
            None => Err(self.damaged(index, location, Error::corrupt("the record is not within its chunk"))),
        }
    }
}
