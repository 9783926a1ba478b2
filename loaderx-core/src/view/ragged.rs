use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::Arc;

use super::convert::Conversion;
use super::typed::Typed;
use super::{Column, RaggedBatch, Request, Source};
use crate::buffer::{Filler, rows};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::schema::{Kind, Schema};
use crate::store::Store;

/// A store of records that each have their own number of rows.
///
/// Cheap to clone; the clones share the store.
///
/// ```
/// use loaderx_core::{Codec, DType, RaggedWriter};
///
/// # fn main() -> loaderx_core::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary directory");
/// # let path = dir.path().join("texts");
/// let writer = RaggedWriter::create(&path, DType::U16, &[], Codec::Raw)?;
/// writer.append([11_u16, 12, 13, 21], &[3, 1])?; // texts of three tokens and of one
/// let texts = writer.finish()?;
/// let batch = texts.batch(&[1, 0])?;
/// assert_eq!(batch.values().as_slice::<u16>()?, [21, 11, 12, 13]);
/// assert_eq!(batch.cu_seqlens()?, [0, 1, 4]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Ragged {
    records: Typed,
    conversion: Conversion,
}

impl Ragged {
    /// Opens the ragged store in the directory `path` for reading.
    ///
    /// # Errors
    ///
    /// When there is no store, it is damaged, has no schema or is dense.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::new(Arc::new(Store::open(path)?))
    }

    /// Views an open store.
    ///
    /// # Errors
    ///
    /// When the store has no schema or is dense, or its rows have no elements to count them by.
    pub fn new(store: Arc<Store>) -> Result<Self> {
        let records = Typed::of_kind(store, Kind::Ragged)?;
        require_countable(&records.schema).map_err(|error| error.at_path(records.store.path()))?;
        let conversion = Conversion::none(records.schema.dtype());
        Ok(Self { records, conversion })
    }

    /// These records with elements of `dtype`, converted while they are gathered: any float type, or an integer type
    /// that holds every value. Padded and packed batches are made of the converted elements.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] for any other type.
    pub fn convert(&self, dtype: DType) -> Result<Self> {
        Ok(Self { conversion: Conversion::new(self.records.schema.dtype(), dtype)?, ..self.clone() })
    }

    /// The store below.
    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        &self.records.store
    }

    /// Records.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.records.store.len()
    }

    /// Whether there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.store.is_empty()
    }

    /// The type of each element of a batch.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.conversion.to()
    }

    /// The shape of one row; empty for sequences of scalars.
    #[must_use]
    pub fn item_shape(&self) -> &[usize] {
        self.records.schema.item_shape()
    }

    /// Kind, element type and row shape as they are stored.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.records.schema
    }

    /// The rows of each record at `indices`, without reading the records.
    ///
    /// # Errors
    ///
    /// When an index is not below [`Ragged::len`], or a record's bytes are not a whole number of rows.
    pub fn lengths(&self, indices: &[u64]) -> Result<Vec<usize>> {
        let mut bytes = Vec::new();
        self.records.store.lengths(indices, &mut bytes)?;
        let item = self.records.schema.item_bytes();
        bytes
            .iter()
            .zip(indices)
            .map(|(&bytes, &index)| {
                let bytes = usize::try_from(bytes).ok().filter(|bytes| bytes.is_multiple_of(item));
                bytes.map(|bytes| bytes / item).ok_or_else(|| self.not_whole(index))
            })
            .collect()
    }

    /// Gathers the records at `indices`, in that order, one after the other.
    ///
    /// # Errors
    ///
    /// When an index is not below [`Ragged::len`] or stored data are damaged.
    pub fn batch(&self, indices: &[u64]) -> Result<RaggedBatch> {
        self.gather_batch(&Request::new(indices))
    }

    fn gather_batch(&self, request: &Request<'_>) -> Result<RaggedBatch> {
        let item = self.records.schema.item_bytes();
        let (mut rows, mut bytes) = (0_usize, 0_usize);
        let mut offsets = Vec::with_capacity(request.indices.len() + 1);
        let mut places = Vec::with_capacity(request.indices.len() + 1);
        offsets.push(0_i64);
        places.push(0_usize);
        for length in self.lengths(request.indices)? {
            let end = length.checked_mul(item).and_then(|length| bytes.checked_add(length));
            bytes = end.ok_or_else(|| too_large(request.indices.len(), &self.records.schema))?;
            // No more than the bytes, which are in range.
            rows += length;
            places.push(bytes);
            offsets.push(
                i64::try_from(rows).map_err(|_| too_large(request.indices.len(), &self.records.schema))?,
            );
        }
        let room = request.memory.room(self.dtype(), bytes / self.records.schema.dtype().size())?;
        let values = room.fill(|room| {
            let written = if request.threads > 1 {
                self.gather_with_threads(request, &places, room)?
            } else {
                self.gather_block(request.indices, &places, room)?
            };
            if self.conversion.is_none() {
                self.records.check_truth(request.indices, written, |at| {
                    places.partition_point(|&place| place <= at).saturating_sub(1)
                })?;
            }
            Ok(written)
        })?;
        RaggedBatch::from_parts(values, offsets, self.item_shape().to_vec())
    }

    /// Gathers the records into `room`; record i is the stored bytes `places[i]..places[i + 1]` of the batch.
    fn gather_with_threads<'a>(
        &self,
        request: &Request<'_>,
        places: &[usize],
        room: &'a mut [MaybeUninit<u8>],
    ) -> Result<&'a mut [u8]> {
        let (from, to) = (self.records.schema.dtype().size(), self.dtype().size());
        let place = |record: usize| places.get(record).map_or(0, |&bytes| bytes / from * to);
        rows::fill_places(room, request.indices.len(), place, request.threads, |range, block| {
            let indices = request.indices.get(range.clone()).unwrap_or(&[]);
            let ends = places.get(range.start..=range.end).unwrap_or(&[0]);
            let first = ends.first().copied().unwrap_or(0);
            let places: Vec<usize> = ends.iter().map(|&end| end - first).collect();
            self.gather_block(indices, &places, block)
        })
    }

    /// As [`Self::gather_with_threads`], alone.
    fn gather_block<'a>(
        &self,
        indices: &[u64],
        places: &[usize],
        room: &'a mut [MaybeUninit<u8>],
    ) -> Result<&'a mut [u8]> {
        if self.conversion.is_none() {
            return self.records.store.gather_at(indices, places, room);
        }
        let mut filler = Filler::new(room);
        self.records.store.visit(indices, |at, stored| {
            self.conversion.write(stored, &mut filler).map_err(|error| {
                error.at_path(self.records.store.path()).for_record(indices.get(at).copied().unwrap_or(0))
            })
        })?;
        filler.finish()
    }

    pub(super) fn conversion(&self) -> &Conversion {
        &self.conversion
    }

    pub(super) fn not_whole(&self, index: u64) -> Error {
        Error::corrupt(format!(
            "a record is not a whole number of rows of {} bytes ({})",
            self.records.schema.item_bytes(),
            self.records.schema
        ))
        .at_path(self.records.store.path())
        .for_record(index)
    }
}

impl Source for Ragged {
    fn len(&self) -> u64 {
        Self::len(self)
    }

    fn gather(&self, request: &Request<'_>) -> Result<Column> {
        self.gather_batch(request).map(Column::Ragged)
    }

    fn batch_bytes(&self, indices: &[u64]) -> Result<u64> {
        let mut bytes = Vec::new();
        self.records.store.lengths(indices, &mut bytes)?;
        let stored = bytes.iter().fold(0_u64, |sum, &bytes| sum.saturating_add(bytes));
        let elements = stored / self.records.schema.dtype().size() as u64;
        Ok(elements.saturating_mul(self.dtype().size() as u64))
    }

    fn advise(&self, indices: &[u64]) {
        self.records.store.advise(indices);
    }

    fn describe(&self) -> String {
        if self.conversion.is_none() {
            self.records.schema.to_string()
        } else {
            format!("{} {}", self.records.schema, self.conversion)
        }
    }
}

/// A ragged record's rows are counted by its bytes, so a row must have some.
pub(super) fn require_countable(schema: &Schema) -> Result<()> {
    if schema.item_bytes() > 0 {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Unsupported,
        format!(
            "rows of shape {:?} have no elements, so a record could not tell how many it has",
            schema.item_shape()
        ),
    )
    .with_hint("store such records as dense, or leave the empty side out of the row's shape"))
}

pub(super) fn too_large(records: usize, schema: &Schema) -> Error {
    Error::new(ErrorKind::LimitExceeded, format!("a batch of {records} records of {schema} is too large"))
        .with_hint("use a smaller batch")
}
