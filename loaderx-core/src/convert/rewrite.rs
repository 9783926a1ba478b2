//! Stores into stores: another codec, several into one, a part of one.

use std::path::Path;

use super::blocks::{BLOCK_BYTES, BLOCK_RECORDS};
use super::job::Job;
use super::options::{ImportOptions, Imported};
use super::sink::Sink;
use crate::error::{Error, ErrorKind, Result};
use crate::schema::Schema;
use crate::store::Store;

/// Records of a store, in an order.
pub struct Part<'a> {
    store: &'a Store,
    indices: Box<dyn Iterator<Item = u64> + 'a>,
}

impl<'a> Part<'a> {
    /// Every record of `store`.
    #[must_use]
    pub fn all(store: &'a Store) -> Self {
        Self { store, indices: Box::new(0..store.len()) }
    }

    /// The records of `store` at `indices`.
    pub fn at(store: &'a Store, indices: impl Iterator<Item = u64> + 'a) -> Self {
        Self { store, indices: Box::new(indices) }
    }
}

impl std::fmt::Debug for Part<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Part").field("store", &self.store.path()).finish_non_exhaustive()
    }
}

/// Writes the parts, one after the other, into the new store `dest`: recodes one store, merges several, or takes
/// a part of one.
///
/// ```
/// # fn main() -> loaderx_core::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let (path, dest) = (dir.path().join("a"), dir.path().join("b"));
/// use loaderx_core::convert::{ImportOptions, Part, rewrite};
/// use loaderx_core::{Codec, DType, Dense, DenseWriter};
///
/// let writer = DenseWriter::create(&path, DType::U8, &[], Codec::Raw)?;
/// writer.append(vec![1_u8, 2, 3])?;
/// let store = writer.store();
/// let parts = vec![Part::all(store), Part::at(store, [2, 0].into_iter())];
/// rewrite(parts, &dest, &ImportOptions::new())?;
/// assert_eq!(Dense::open(&dest)?.batch(&[0, 1, 2, 3, 4])?.as_slice::<u8>()?, [1, 2, 3, 3, 1]);
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`ErrorKind::SchemaMismatch`] when the stores hold different things, or one has no schema;
/// [`ErrorKind::OutOfRange`] for an index that its store does not have; [`ErrorKind::AlreadyExists`] when there is
/// something in `dest`; when stored bytes are damaged.
pub fn rewrite(parts: Vec<Part<'_>>, dest: impl AsRef<Path>, options: &ImportOptions) -> Result<Imported> {
    let schema = common_schema(&parts)?;
    let mut job = Job::begin(dest.as_ref(), options)?;
    let mut sink = job.only_stream(schema, None)?;
    for part in parts {
        copy(part, &mut job, &mut sink)?;
    }
    job.finish(vec![sink])
}

/// Writes a new dataset `dest` whose streams consist of the given parts.
///
/// # Errors
///
/// As [`rewrite`]; [`ErrorKind::SchemaMismatch`] when the streams would differ in length.
pub fn rewrite_streams(
    streams: Vec<(&str, Vec<Part<'_>>)>,
    dest: impl AsRef<Path>,
    options: &ImportOptions,
) -> Result<Imported> {
    let mut job = Job::begin(dest.as_ref(), options)?;
    let mut sinks = Vec::new();
    for (name, parts) in streams {
        let mut sink = job.stream(name, common_schema(&parts)?, None)?;
        for part in parts {
            copy(part, &mut job, &mut sink)?;
        }
        sinks.push(sink);
    }
    job.finish(sinks)
}

fn common_schema(parts: &[Part<'_>]) -> Result<Schema> {
    let mut common: Option<&Schema> = None;
    for part in parts {
        let schema = part.store.schema().ok_or_else(|| {
            Error::new(ErrorKind::SchemaMismatch, "the store has no schema, its records are plain bytes")
                .at_path(part.store.path())
        })?;
        match common {
            Some(common) => schema.require(common).map_err(|error| error.at_path(part.store.path()))?,
            None => common = Some(schema),
        }
    }
    common.cloned().ok_or_else(|| Error::invalid("there are no stores to take records from"))
}

fn copy(mut part: Part<'_>, job: &mut Job<'_>, sink: &mut Sink) -> Result<()> {
    let mut lengths = Vec::new();
    loop {
        let wanted: Vec<u64> = part.indices.by_ref().take(BLOCK_RECORDS).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        part.store.lengths(&wanted, &mut lengths)?;
        let mut rest = wanted.as_slice();
        let mut rest_lengths = lengths.as_slice();
        while !rest.is_empty() {
            let mut bytes = 0;
            let fitting = rest_lengths.iter().take_while(|&&length| {
                bytes += length;
                bytes <= BLOCK_BYTES as u64
            });
            let count = fitting.count().max(1).min(rest.len());
            let (block, tail) = rest.split_at(count);
            let mut copied = 0;
            part.store.visit(block, |_, record| {
                copied += record.len() as u64;
                sink.push(record)
            })?;
            job.meter.advance(block.len() as u64, copied)?;
            rest = tail;
            rest_lengths = rest_lengths.get(count..).unwrap_or_default();
        }
    }
}
