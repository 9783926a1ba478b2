use std::fmt;
use std::num::NonZero;
use std::sync::Arc;
use std::thread;

use super::{OutRow, RecordRng, Stored};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::schema::Schema;
use crate::store::Store;
use crate::view::dense::batch_shape;
use crate::view::fill::rows_of;
use crate::view::ragged::too_large;
use crate::view::{Column, Dense, DenseBatch, Ragged, Request, Source};

/// What a record map returns: any error, with `?`.
pub type MapResult = Result<(), Box<dyn std::error::Error + Send + Sync>>;

type Map = dyn Fn(&mut RecordRng, Stored<'_>, &mut OutRow<'_>) -> MapResult + Send + Sync;

/// Records that a function decodes or augments while they are gathered, made by [`Dense::map`] and [`Ragged::map`].
///
/// The function gets random numbers keyed by (seed, step, position), the stored record, and the record's row of the
/// batch, which it writes. It runs for several records at a time when the request allows threads and the work is worth
/// them; the batch is the same for any number.
///
/// ```
/// use loaderx_core::{Codec, DType, RaggedWriter};
///
/// # fn main() -> loaderx_core::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary directory");
/// # let path = dir.path().join("texts");
/// let writer = RaggedWriter::create(&path, DType::U8, &[], Codec::Raw)?;
/// writer.append_records(["1 2 3".as_bytes(), "40 50 60".as_bytes()])?;
/// let points = writer.finish()?.map(&[3], DType::F32, |rng, stored, row| {
///     let text = std::str::from_utf8(stored.bytes())?;
///     let gain = if rng.chance(0.5) { 1.0 } else { -1.0 };
///     let numbers = text.split(' ').map(str::parse::<f32>).collect::<Result<Vec<_>, _>>()?;
///     row.write(numbers.into_iter().map(|number| number * gain))?;
///     Ok(())
/// })?;
/// let batch = points.batch(&[1, 0], 7, 1000)?;
/// assert_eq!(batch.shape(), [2, 3]);
/// assert_eq!(batch.as_slice::<f32>()?[0].abs(), 40.0);
/// assert_eq!(points.batch(&[1, 0], 7, 1000)?.as_slice::<f32>()?, batch.as_slice::<f32>()?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Mapped {
    store: Arc<Store>,
    stored: Schema,
    item: Schema,
    name: String,
    map: Arc<Map>,
}

impl Dense {
    /// A source whose records are made from these by `map`, each `item_shape` elements of `dtype`.
    ///
    /// # Errors
    ///
    /// When a record of this shape would not fit into memory.
    pub fn map(
        &self,
        item_shape: &[usize],
        dtype: DType,
        map: impl Fn(&mut RecordRng, Stored<'_>, &mut OutRow<'_>) -> MapResult + Send + Sync + 'static,
    ) -> Result<Mapped> {
        Ok(Mapped::new(self.store(), self.schema(), Schema::dense(dtype, item_shape)?, Arc::new(map)))
    }
}

impl Ragged {
    /// A source whose records are made from these by `map`, each `item_shape` elements of `dtype`: an image decoded
    /// from its file's bytes, say. `map` sees the records as they are stored.
    ///
    /// # Errors
    ///
    /// When a record of this shape would not fit into memory.
    pub fn map(
        &self,
        item_shape: &[usize],
        dtype: DType,
        map: impl Fn(&mut RecordRng, Stored<'_>, &mut OutRow<'_>) -> MapResult + Send + Sync + 'static,
    ) -> Result<Mapped> {
        Ok(Mapped::new(self.store(), self.schema(), Schema::dense(dtype, item_shape)?, Arc::new(map)))
    }
}

impl Mapped {
    fn new(store: &Arc<Store>, stored: &Schema, item: Schema, map: Arc<Map>) -> Self {
        Self { store: Arc::clone(store), stored: stored.clone(), item, name: "map".to_owned(), map }
    }

    /// Names the function and its version. A loader's saved state carries the name, so that a run does not resume
    /// with another function unnoticed.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The type of each element of a batch.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.item.dtype()
    }

    /// The shape of a mapped record.
    #[must_use]
    pub fn item_shape(&self) -> &[usize] {
        self.item.item_shape()
    }

    /// Gathers the records at `indices`, mapped for `step` of `seed`, on as many threads as there are processors.
    ///
    /// # Errors
    ///
    /// When an index is not below the number of records, stored data are damaged, or the function fails
    /// ([`ErrorKind::Callback`] for errors that are not of this crate).
    ///
    /// # Panics
    ///
    /// When the function panics.
    pub fn batch(&self, indices: &[u64], seed: u64, step: u64) -> Result<DenseBatch> {
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        self.gather_batch(&Request::new(indices).at(seed, step).threads(threads))
    }

    fn gather_batch(&self, request: &Request<'_>) -> Result<DenseBatch> {
        let records = request.indices.len();
        let item = self.item.item_elements();
        let elements = records
            .checked_mul(item)
            .filter(|_| u32::try_from(records.saturating_add(request.first_position)).is_ok());
        let elements = elements.ok_or_else(|| too_large(records, &self.item))?;
        let row_bytes = self.item.item_bytes();
        let data = request.memory.room(self.dtype(), elements)?.fill(|room| {
            rows_of(&self.store, request, row_bytes, room, |record, filler| {
                // Below the end of the batch, which fits.
                let position = u32::try_from(request.first_position + record.position).unwrap_or(u32::MAX);
                let mut rng = RecordRng::new(request.seed, request.step, position);
                let stored = Stored::new(record.bytes, &self.stored, record.index);
                filler.with(row_bytes, |room| {
                    let mut row = OutRow::new(self.dtype(), room);
                    (self.map)(&mut rng, stored, &mut row).map_err(|error| self.failed(error))?;
                    row.finish()
                })
            })
        })?;
        Ok(DenseBatch::trusted(data, batch_shape(records, self.item_shape())))
    }

    fn failed(&self, error: Box<dyn std::error::Error + Send + Sync>) -> Error {
        match error.downcast::<Error>() {
            Ok(error) => *error,
            Err(error) => Error::new(ErrorKind::Callback, format!("the record map {:?} failed", self.name))
                .caused_by(error),
        }
    }
}

impl Source for Mapped {
    fn len(&self) -> u64 {
        self.store.len()
    }

    fn gather(&self, request: &Request<'_>) -> Result<Column> {
        self.gather_batch(request).map(Column::Dense)
    }

    fn batch_bytes(&self, indices: &[u64]) -> Result<u64> {
        Ok((indices.len() as u64).saturating_mul(self.item.item_bytes() as u64))
    }

    fn advise(&self, indices: &[u64]) {
        self.store.advise(indices);
    }

    fn describe(&self) -> String {
        format!("{} {} -> {}", self.stored, self.name, self.item)
    }
}

/// Everything but the function itself.
impl fmt::Debug for Mapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapped({})", self.describe())
    }
}
