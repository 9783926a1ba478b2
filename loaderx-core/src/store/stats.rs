//! What a store holds, in numbers.

use std::collections::BTreeMap;

use super::{Store, names};
use crate::codec::Codec;
use crate::error::{Error, Result};
use crate::format::{CHUNK_BYTES, Compression, FormatVersion};
use crate::io::Access;

/// What a store holds, in numbers. Bytes are counted over the live records unless said otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The format version.
    pub format: FormatVersion,
    /// How appended records are stored.
    pub codec: Codec,
    /// Live records.
    pub records: u64,
    /// Records stored as they are.
    pub raw_records: u64,
    /// Records stored as zstd frames without a dictionary.
    pub zstd_records: u64,
    /// Records stored as zstd frames with the dictionary.
    pub zstd_dict_records: u64,
    /// Bytes of the records' content.
    pub decoded_bytes: u64,
    /// Bytes that they take in the chunks.
    pub stored_bytes: u64,
    /// The shortest record's content; 0 in an empty store.
    pub shortest_record: u64,
    /// The longest record's content.
    pub longest_record: u64,
    /// Chunk files.
    pub chunks: u64,
    /// Length of all chunk files.
    pub chunk_bytes: u64,
    /// Bytes of the chunk files that belong to no live record; [`Store::compact`] gives them back.
    pub garbage_bytes: u64,
    /// Bytes of the dictionary; 0 without one.
    pub dictionary_bytes: u64,
}

impl Store {
    /// Counts what the store holds. Reads the whole record table, 16 bytes a record, and no record.
    ///
    /// # Errors
    ///
    /// When the table is damaged or a file cannot be looked at.
    pub fn stats(&self) -> Result<Stats> {
        let length = self.len();
        let sizes = self.chunk_sizes()?;
        let chunk_bytes = sizes.iter().map(|(_, size)| size).sum();
        let mut stats = Stats {
            format: self.version,
            codec: self.codec,
            records: length,
            raw_records: 0,
            zstd_records: 0,
            zstd_dict_records: 0,
            decoded_bytes: 0,
            stored_bytes: 0,
            shortest_record: u64::MAX,
            longest_record: 0,
            chunks: sizes.len() as u64,
            chunk_bytes,
            garbage_bytes: 0,
            dictionary_bytes: self
                .dictionary
                .as_ref()
                .map_or(0, |dictionary| dictionary.bytes().len() as u64),
        };
        let mut used = BTreeMap::new();
        let mut indices = Vec::new();
        let mut start = 0;
        while start < length {
            let end = length.min(start + (1 << 16));
            indices.clear();
            indices.extend(start..end);
            for location in self.locate(&indices)?.0.iter() {
                match location.compression {
                    Compression::Raw => stats.raw_records += 1,
                    Compression::Zstd => stats.zstd_records += 1,
                    Compression::ZstdDict => stats.zstd_dict_records += 1,
                }
                let decoded = u64::from(location.decoded_length);
                stats.decoded_bytes += decoded;
                stats.stored_bytes += u64::from(location.stored_length);
                let end = used.entry(location.chunk).or_insert(0);
                *end = location.end().max(*end);
                stats.shortest_record = stats.shortest_record.min(decoded);
                stats.longest_record = stats.longest_record.max(decoded);
            }
            start = end;
        }
        if length == 0 {
            stats.shortest_record = 0;
        }
        let reclaimable = sizes.iter().map(|(chunk, size)| match used.get(chunk) {
            // Python makes a chunk as long as it can ever be: what lies past its last record is a hole.
            end if *size >= CHUNK_BYTES => end.copied().unwrap_or(0),
            _ => *size,
        });
        stats.garbage_bytes = reclaimable.sum::<u64>().saturating_sub(stats.stored_bytes);
        Ok(stats)
    }

    /// The chunk files and their lengths, ascending.
    pub(super) fn chunk_sizes(&self) -> Result<Vec<(u16, u64)>> {
        let listed = self
            .directory
            .names()
            .map_err(|error| Error::io("list the store's directory", &self.path, error))?;
        let mut sizes = Vec::new();
        for name in listed {
            if let Some(chunk) = names::parse_chunk(&name) {
                let size = self.directory.open(&name, Access::Read).and_then(|file| file.size());
                sizes.push((
                    chunk,
                    size.map_err(|error| Error::io("look at a chunk", self.file(&name), error))?,
                ));
            }
        }
        sizes.sort_unstable();
        Ok(sizes)
    }
}
