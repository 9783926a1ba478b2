//! Stores into stores: another codec, several into one, a part of one.

use std::path::Path;

use super::blocks::{BLOCK_RECORDS, each_run};
use super::described::described;
use super::job::Job;
use super::options::{ImportOptions, Imported};
use super::sink::Sink;
use crate::error::{Error, ErrorKind, Result};
use crate::schema::Schema;
use crate::store::Store;

/// Records of a store, in an order.
pub struct Part<'a> {
    store: &'a Store,
    schema: Option<Schema>,
    indices: Box<dyn Iterator<Item = u64> + 'a>,
}

impl<'a> Part<'a> {
    /// Every record of `store`.
    #[must_use]
    pub fn all(store: &'a Store) -> Self {
        Self::at(store, 0..store.len())
    }

    /// The records of `store` at `indices`.
    pub fn at(store: &'a Store, indices: impl Iterator<Item = u64> + 'a) -> Self {
        Self { store, schema: None, indices: Box::new(indices) }
    }

    /// Says what the records of a store without a schema are, such as one that the Python package wrote from plain
    /// bytes. They are checked against it, and the new store has it.
    #[must_use]
    pub fn described(mut self, schema: Schema) -> Self {
        self.schema = Some(schema);
        self
    }

    /// What the records are: what the store says, else what the caller says.
    fn schema(&self) -> Result<Option<Schema>> {
        described(self.store, self.schema.as_ref())
    }

    /// Records, where the iterator knows.
    fn records(&self) -> Option<u64> {
        match self.indices.size_hint() {
            (least, Some(most)) if least == most => Some(most as u64),
            _ => None,
        }
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
/// [`ErrorKind::SchemaMismatch`] when the stores hold different things, one has a schema and another none, or a record
/// is not what [`Part::described`] says; [`ErrorKind::OutOfRange`] for an index that its store does not have; [`ErrorKind::AlreadyExists`] when there is
/// something in `dest`; when stored bytes are damaged.
pub fn rewrite(parts: Vec<Part<'_>>, dest: impl AsRef<Path>, options: &ImportOptions) -> Result<Imported> {
    let schema = common_schema(&parts)?;
    let records = count(&parts);
    let mut job = Job::begin(dest.as_ref(), options)?;
    job.meter.expect(records, None);
    let mut sink = job.only_stream(schema, records)?;
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
    let schemas = streams.iter().map(|(_, parts)| common_schema(parts)).collect::<Result<Vec<_>>>()?;
    let mut job = Job::begin(dest.as_ref(), options)?;
    job.meter.expect(streams.iter().map(|(_, parts)| count(parts)).sum(), None);
    let mut sinks = Vec::new();
    for ((name, parts), schema) in streams.into_iter().zip(schemas) {
        let mut sink = job.stream(name, schema, count(&parts))?;
        for part in parts {
            copy(part, &mut job, &mut sink)?;
        }
        sinks.push(sink);
    }
    job.finish(sinks)
}

/// Records of all parts, where all tell.
fn count(parts: &[Part<'_>]) -> Option<u64> {
    parts.iter().map(Part::records).sum()
}

/// The schema of all parts; `None` when each is plain bytes.
fn common_schema(parts: &[Part<'_>]) -> Result<Option<Schema>> {
    let Some((first, others)) = parts.split_first() else {
        return Err(Error::invalid("there are no stores to take records from"));
    };
    let common = first.schema()?;
    for part in others {
        let own = part.schema()?;
        if own != common {
            let words = |schema: &Option<Schema>| {
                schema.as_ref().map_or("plain bytes without a schema".to_owned(), Schema::to_string)
            };
            let error = Error::new(
                ErrorKind::SchemaMismatch,
                format!(
                    "the store holds {}, {} holds {}",
                    words(&own),
                    first.store.path().display(),
                    words(&common)
                ),
            )
            .at_path(part.store.path());
            return Err(match (own, common) {
                (Some(_), Some(_)) => error,
                _ => error.with_hint("say what the records of the store without a schema are (--dtype and --shape on the command line)"),
            });
        }
    }
    Ok(common)
}

fn copy(mut part: Part<'_>, job: &mut Job<'_>, sink: &mut Sink) -> Result<()> {
    loop {
        let indices: Vec<u64> = part.indices.by_ref().take(BLOCK_RECORDS).collect();
        if indices.is_empty() {
            return Ok(());
        }
        each_run(part.store, &indices, |run| {
            let mut copied = 0;
            part.store.visit(run, |_, record| {
                copied += record.len() as u64;
                sink.push(record)
            })?;
            job.meter.advance(run.len() as u64, copied)
        })?;
    }
}
