//! Records are compressed where that makes them shorter, with the checksums of what will be stored.

use std::ops::Range;

use crate::codec::{self, Codec, Dictionary, FrameOptions};
use crate::error::{Error, ErrorKind, Result};
use crate::format::Compression;

/// Below this many bytes another thread costs more than it saves.
const PARALLEL_BYTES: usize = 256 << 10;

/// How the records of a store that compresses become stored bytes.
#[derive(Clone, Copy)]
pub(super) struct Encoder<'a> {
    options: FrameOptions,
    dictionary: Option<&'a Dictionary>,
    compression: Compression,
}

/// One encoded record.
pub(super) struct Piece<'a> {
    content: &'a [u8],
    /// Its place among the frames of its part; `None` if it is stored as it is.
    frame: Option<Range<usize>>,
    pub(super) compression: Compression,
    pub(super) crc: u32,
}

/// Encoded records that follow each other.
pub(super) struct Part<'a> {
    frames: Vec<u8>,
    pub(super) pieces: Vec<Piece<'a>>,
}

impl<'a> Part<'a> {
    /// The stored bytes of one of its pieces.
    pub(super) fn stored<'s>(&'s self, piece: &'s Piece<'a>) -> &'s [u8] {
        match &piece.frame {
            Some(range) => self.frames.get(range.clone()).unwrap_or_default(),
            None => piece.content,
        }
    }
}

impl Piece<'_> {
    pub(super) fn decoded_length(&self) -> usize {
        self.content.len()
    }
}

impl<'d> Encoder<'d> {
    /// `None` if the codec stores records as they are.
    pub(super) fn new(codec: Codec, dictionary: Option<&'d Dictionary>) -> Option<Self> {
        let options = codec.frames()?;
        let (dictionary, compression) = match codec {
            Codec::ZstdDict { .. } => (dictionary, Compression::ZstdDict),
            _ => (None, Compression::Zstd),
        };
        Some(Self { options, dictionary, compression })
    }

    /// Encodes records, on several threads if they are many bytes.
    pub(super) fn encode<'a>(&self, records: &[&'a [u8]]) -> Result<Vec<Part<'a>>> {
        let bytes: usize = records.iter().map(|record| record.len()).sum();
        let threads = (bytes / PARALLEL_BYTES + 1).min(parallelism()).min(records.len().max(1));
        if threads == 1 {
            return Ok(vec![self.encode_part(records)?]);
        }
        let parts = split(records, bytes, threads);
        std::thread::scope(|scope| {
            let mut parts = parts.into_iter();
            let own = parts.next().unwrap_or_default();
            let others: Vec<_> = parts.map(|part| scope.spawn(move || self.encode_part(part))).collect();
            let mut encoded = vec![self.encode_part(own)?];
            for other in others {
                let part = other.join().map_err(|_| {
                    Error::new(ErrorKind::Panicked, "a thread that compressed records has panicked")
                })?;
                encoded.push(part?);
            }
            Ok(encoded)
        })
    }

    fn encode_part<'a>(&self, records: &[&'a [u8]]) -> Result<Part<'a>> {
        let mut part = Part { frames: Vec::new(), pieces: Vec::with_capacity(records.len()) };
        for &record in records {
            let start = part.frames.len();
            let length = codec::compress(record, self.options, self.dictionary, &mut part.frames)?;
            if length >= record.len() {
                part.frames.truncate(start);
                part.pieces.push(raw(record));
                continue;
            }
            let range = start..start + length;
            let crc = crc32fast::hash(part.frames.get(range.clone()).unwrap_or_default());
            part.pieces.push(Piece {
                content: record,
                frame: Some(range),
                compression: self.compression,
                crc,
            });
        }
        Ok(part)
    }
}

fn raw(record: &[u8]) -> Piece<'_> {
    Piece { content: record, frame: None, compression: Compression::Raw, crc: crc32fast::hash(record) }
}

fn parallelism() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Divides records into runs of about equally many bytes.
fn split<'s, 'a>(records: &'s [&'a [u8]], bytes: usize, parts: usize) -> Vec<&'s [&'a [u8]]> {
    let share = bytes.div_ceil(parts);
    let mut runs = Vec::with_capacity(parts);
    let (mut start, mut filled) = (0, 0);
    for (i, record) in records.iter().enumerate() {
        filled += record.len();
        if filled >= share && runs.len() + 1 < parts {
            runs.push(&records[start..=i]);
            (start, filled) = (i + 1, 0);
        }
    }
    runs.push(&records[start..]);
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitting_keeps_every_record_in_order() {
        let data = [0_u8; 100];
        for count in [0, 1, 2, 7, 50] {
            let records: Vec<&[u8]> = (0..count).map(|i| &data[..i * 2]).collect();
            let bytes = records.iter().map(|record| record.len()).sum();
            for parts in 1..9 {
                let runs = split(&records, bytes, parts);
                assert!(runs.len() <= parts);
                assert_eq!(runs.concat(), records);
            }
        }
    }

    #[test]
    fn several_threads_encode_as_one_does() {
        let noise: Vec<u8> =
            (0..2_000_000_u32).map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()[2] & 0x3f).collect();
        let records: Vec<&[u8]> = noise.chunks(777).collect();
        let encoder = Encoder::new(Codec::zstd(), None).unwrap();
        let flat = |parts: &[Part<'_>]| -> Vec<(Vec<u8>, u32)> {
            parts
                .iter()
                .flat_map(|part| part.pieces.iter().map(|piece| (part.stored(piece).to_vec(), piece.crc)))
                .collect()
        };
        let parallel = flat(&encoder.encode(&records).unwrap());
        let serial = flat(&[encoder.encode_part(&records).unwrap()]);
        assert_eq!(parallel, serial);
    }

    #[test]
    fn what_does_not_shrink_is_stored_as_it_is() {
        let encoder = Encoder::new(Codec::zstd(), None).unwrap();
        let (short, long) = ([1_u8, 2, 3], [7_u8; 1000]);
        let parts = encoder.encode(&[&short, &long, &[]]).unwrap();
        let kinds: Vec<_> = parts[0].pieces.iter().map(|piece| piece.compression).collect();
        assert_eq!(kinds, [Compression::Raw, Compression::Zstd, Compression::Raw]);
        assert_eq!(parts[0].stored(&parts[0].pieces[0]), short);
        assert!(parts[0].stored(&parts[0].pieces[1]).len() < 1000);
    }
}
