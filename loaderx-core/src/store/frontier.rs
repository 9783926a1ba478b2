//! Where the next append may write: past every record, and within a file that is there.
//!
//! A frontier that is too near makes an append overwrite records; one that is too far makes it fill a gap with zeros, which
//! may be gigabytes, and under an entry whose bytes are lost zeros are read as the record. So no append begins at a
//! frontier that nothing vouches for. `docs/format.md`, 3.2, says what is proven when.

use std::ops::Range;

use super::scan::Scan;
use super::{Store, names};
use crate::error::{Error, Result};
use crate::format::{Header, LOCATION_BYTES, Location, table_offset};

/// Entries are read in pieces of as many.
const PIECE: u64 = 4096;

/// What becomes of records whose bytes the files do not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// They stay, and no append may put other bytes where theirs should be.
    Stay,
    /// They are about to be taken out.
    Go,
}

/// How far records reach.
#[derive(Clone, Copy, Debug, Default)]
struct Reach {
    /// The chunk and the offset where the last record ends whose bytes are there.
    end: (u16, u64),
    /// The same of a record whose bytes lie, in part, past the end of their file; and its index.
    lost: Option<(u16, u64, u64)>,
}

impl Reach {
    fn is_past(&self, frontier: (u16, u64)) -> bool {
        self.end > frontier || self.lost_past(frontier).is_some()
    }

    fn lost_past(&self, frontier: (u16, u64)) -> Option<(u16, u64)> {
        self.lost.filter(|&(chunk, end, _)| (chunk, end) > frontier).map(|(chunk, _, index)| (chunk, index))
    }
}

impl Store {
    /// `header` with as many records as `suspects` ends at, and with a frontier past which no record lies and up to which
    /// its chunk reaches. All records are looked at only if one of the suspects, the length of the chunk or `doubtful` says
    /// that the frontier of `header` is not that.
    pub(super) fn proven_frontier(
        &self,
        scan: &mut Scan<'_>,
        header: Header,
        suspects: Range<u64>,
        doubtful: bool,
    ) -> Result<Header> {
        let kept = suspects.end;
        let header = Header { length: u32::try_from(kept).unwrap_or(header.length), ..header };
        let said = (header.tail_chunk, u64::from(header.tail_offset));
        let reaches = self.size_of(scan, header.tail_chunk)?.is_some_and(|size| said.1 <= size);
        if reaches && !doubtful && !self.reach_of(scan, suspects)?.is_past(said) {
            return Ok(header);
        }
        self.frontier_behind_all(scan, header, Lost::Stay)
    }

    /// `header` with a frontier behind every record that it counts.
    pub(super) fn frontier_behind_all(
        &self,
        scan: &mut Scan<'_>,
        header: Header,
        lost: Lost,
    ) -> Result<Header> {
        let mut reach = self.reach_of(scan, 0..u64::from(header.length))?;
        if lost == Lost::Go {
            reach.lost = None;
        }
        let said = (header.tail_chunk, u64::from(header.tail_offset));
        let start = match self.size_of(scan, header.tail_chunk)? {
            // Bytes of a file that belong to no record stay untouched too: they may be what was cut off.
            Some(size) => (header.tail_chunk, said.1.min(size)),
            None if reach.lost_past((header.tail_chunk, 0)).is_some() => {
                return Err(Error::corrupt("the last chunk file is missing, and records lie in it")
                    .at_path(self.file(&names::chunk(header.tail_chunk)))
                    .with_hint("put it back from a copy; the records of other chunks can be read"));
            }
            None => (reach.end.0, self.size_of(scan, reach.end.0)?.unwrap_or(0)),
        };
        let mut frontier = start.max(reach.end);
        if let Some((chunk, index)) = reach.lost_past(frontier) {
            // Behind lost bytes an append would fill their place with zeros, and the record would be read as these.
            let next = chunk.checked_add(1).filter(|&next| u32::from(next) < header.version.max_chunks());
            let Some(next) = next else {
                return Err(Error::corrupt(format!(
                    "the record's bytes are not there, and no chunk is left behind chunk {chunk} for appends"
                ))
                .at_path(self.file(names::META))
                .for_record(index)
                .with_hint("repair() takes such records out; the others can be read"));
            };
            frontier = (next, self.size_of(scan, next)?.unwrap_or(0));
        }
        // No record ends past the last offset, so an append there begins the next chunk.
        let tail_offset = u32::try_from(frontier.1).unwrap_or(u32::MAX);
        Ok(Header { tail_chunk: frontier.0, tail_offset, ..header })
    }

    /// How far these records reach.
    fn reach_of(&self, scan: &mut Scan<'_>, records: Range<u64>) -> Result<Reach> {
        let snapshot = self.snapshot();
        let end = records.end.min(self.written(&snapshot)?);
        let (mut reach, mut piece, mut size) = (Reach::default(), Vec::new(), None);
        let mut first = records.start;
        while first < end {
            let count = PIECE.min(end - first);
            piece.resize(usize::try_from(count).map_or(0, |count| count * LOCATION_BYTES), 0);
            snapshot
                .table
                .read_exact(&mut piece, table_offset(first))
                .map_err(|error| Error::io("read the record table", self.file(names::META), error))?;
            for (index, entry) in (first..).zip(piece.as_chunks::<LOCATION_BYTES>().0) {
                let location = Location::decode(entry, self.version)
                    .and_then(|location| location.within_chunks(self.version));
                // An empty record needs no room; an impossible entry says nothing.
                let Ok(location) = location else { continue };
                if location.stored_length == 0 {
                    continue;
                }
                let known = match size {
                    Some((chunk, size)) if chunk == location.chunk => size,
                    _ => self.size_of(scan, location.chunk)?.unwrap_or(0),
                };
                size = Some((location.chunk, known));
                if location.end() <= known {
                    reach.end = reach.end.max((location.chunk, location.end()));
                } else {
                    reach.lost = reach.lost.max(Some((location.chunk, location.end(), index)));
                }
            }
            first += count;
        }
        Ok(reach)
    }

    fn size_of(&self, scan: &mut Scan<'_>, chunk: u16) -> Result<Option<u64>> {
        scan.chunk_size(chunk)
            .map_err(|error| Error::io("look at a chunk", self.file(&names::chunk(chunk)), error))
    }
}
