use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;
use std::sync::PoisonError;

use super::Store;
use super::open::{META, chunk_name};
use crate::codec;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Compression, HEADER_BYTES, LOCATION_BYTES, Location};

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
        let offsets: Vec<usize> = (0..=indices.len()).map(|i| i * record_len).collect();
        self.gather_at(indices, &offsets, dst)
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
            return Err(Error::invalid(
                "the offsets do not divide the destination into one place for each index",
            ));
        }
        let mut bytes = Vec::with_capacity(dst.len());
        for (&index, place) in indices.iter().zip(offsets.windows(2)) {
            let record = self.get(index)?;
            let room = place[1] - place[0];
            if record.len() != room {
                return Err(Error::new(
                    ErrorKind::SchemaMismatch,
                    format!("the record has {} bytes, its place in the batch {room}", record.len()),
                )
                .at_path(&self.path)
                .for_record(index));
            }
            bytes.extend(record);
        }
        Ok(dst.write_copy_of_slice(&bytes))
    }

    /// Gathers records one after the other; returns the bytes and `indices.len() + 1` offsets.
    ///
    /// # Errors
    ///
    /// When an index is not below [`Store::len`] or stored bytes are damaged.
    pub fn gather_packed(&self, indices: &[u64]) -> Result<(Vec<u8>, Vec<u64>)> {
        let mut bytes = Vec::new();
        let mut offsets = vec![0];
        for &index in indices {
            bytes.extend(self.get(index)?);
            offsets.push(bytes.len() as u64);
        }
        Ok((bytes, offsets))
    }

    /// Calls `f(position, record)` for each index in turn.
    ///
    /// # Errors
    ///
    /// The first error of `f`; when an index is not below [`Store::len`] or stored bytes are damaged.
    pub fn visit(&self, indices: &[u64], mut f: impl FnMut(usize, &[u8]) -> Result<()>) -> Result<()> {
        for (position, &index) in indices.iter().enumerate() {
            f(position, &self.get(index)?)?;
        }
        Ok(())
    }

    /// Replaces `out` by the decoded length in bytes of each record.
    ///
    /// # Errors
    ///
    /// When an index is not below [`Store::len`] or the table is damaged.
    pub fn lengths(&self, indices: &[u64], out: &mut Vec<u64>) -> Result<()> {
        out.clear();
        for &index in indices {
            out.push(u64::from(self.locate(index)?.decoded_length));
        }
        Ok(())
    }

    /// Tells the operating system that these records will be read soon.
    pub fn advise(&self, indices: &[u64]) {
        let _ = indices;
    }

    /// The content of one record.
    ///
    /// # Errors
    ///
    /// When the index is not below [`Store::len`] or stored bytes are damaged.
    pub fn get(&self, index: u64) -> Result<Vec<u8>> {
        let location = self.locate(index)?;
        let path = || self.path.join(chunk_name(location.chunk));
        let chunk = {
            let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
            writer.chunks.get(usize::from(location.chunk)).cloned()
        };
        let chunk = chunk.ok_or_else(|| {
            Error::corrupt("the record table names a chunk past the last one")
                .at_path(path())
                .for_record(index)
        })?;
        let mut stored = vec![0; location.stored_length as usize];
        chunk.read_exact_at(&mut stored, u64::from(location.offset)).map_err(|error| {
            Error::corrupt("a record is cut short").at_path(path()).for_record(index).caused_by(error)
        })?;
        if location.compression == Compression::Raw {
            return Ok(stored);
        }
        let mut content = vec![0; location.decoded_length as usize];
        codec::decompress(&stored, &mut content).map_err(|error| error.at_path(path()).for_record(index))?;
        Ok(content)
    }

    fn locate(&self, index: u64) -> Result<Location> {
        if index >= self.len() {
            return Err(Error::new(ErrorKind::OutOfRange, format!("record {index} of {}", self.len()))
                .at_path(&self.path));
        }
        let mut bytes = [0; LOCATION_BYTES];
        let at = HEADER_BYTES as u64 + LOCATION_BYTES as u64 * index;
        self.table.read_exact_at(&mut bytes, at).map_err(|error| {
            Error::io("read the record table", self.path.join(META), error).for_record(index)
        })?;
        Location::decode(&bytes, self.version)
            .map_err(|error| error.at_path(self.path.join(META)).for_record(index))
    }
}
