use super::fill::rows_of;
use super::pad::too_wide;
use super::{Column, DenseBatch, Pad, PaddedBatch, Ragged, Request, Source};
use crate::error::Result;

/// Ragged records that are padded while they are gathered, made by [`Ragged::padded`].
///
/// Each record is copied (or decoded) right into its padded row; there is no ragged batch in between.
#[derive(Clone, Debug)]
pub struct Padded {
    ragged: Ragged,
    pad: Pad,
    value: Vec<u8>,
}

impl Ragged {
    /// A source of these records, padded.
    ///
    /// ```
    /// use loaderx_core::view::Pad;
    /// use loaderx_core::{Codec, DType, RaggedWriter};
    ///
    /// # fn main() -> loaderx_core::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a temporary directory");
    /// # let path = dir.path().join("texts");
    /// let writer = RaggedWriter::create(&path, DType::U16, &[], Codec::Raw)?;
    /// writer.append([5_u16, 6, 7, 8, 9], &[3, 2])?;
    /// // Stored small, delivered as the embedding wants them.
    /// let texts = writer.finish()?.convert(DType::I64)?.padded(Pad::to_longest().multiple_of(4))?;
    /// let batch = texts.batch(&[1, 0])?;
    /// assert_eq!(batch.values().shape(), [2, 4]);
    /// assert_eq!(batch.values().as_slice::<i64>()?, [8, 9, 0, 0, 5, 6, 7, 0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// When the value is none of the elements' type or settings contradict each other.
    pub fn padded(&self, pad: Pad) -> Result<Padded> {
        pad.check()?;
        let value = pad.padding().encode(self.dtype())?;
        Ok(Padded { ragged: self.clone(), pad, value })
    }
}

impl Padded {
    /// The records below.
    #[must_use]
    pub fn ragged(&self) -> &Ragged {
        &self.ragged
    }

    /// Gathers the records at `indices`, in that order, padded.
    ///
    /// # Errors
    ///
    /// When an index is not below the number of records, a record is too long and is not to be cut, or stored data
    /// are damaged.
    pub fn batch(&self, indices: &[u64]) -> Result<PaddedBatch> {
        self.gather_batch(&Request::new(indices))
    }

    fn gather_batch(&self, request: &Request<'_>) -> Result<PaddedBatch> {
        let ragged = &self.ragged;
        let plan = self.plan(request.indices)?;
        let item = ragged.schema().item_elements();
        let stored_item = ragged.schema().item_bytes();
        let elements = plan.elements(item).ok_or_else(|| too_wide(plan.width, request.indices.len()))?;
        let room = request.memory.room(ragged.dtype(), elements)?;
        let row_bytes = plan.width * item * ragged.dtype().size();
        let data = room.fill(|room| {
            rows_of(ragged.store(), request, row_bytes, room, |record, filler| {
                let kept = plan.kept.get(record.position).copied().unwrap_or(0);
                let part = self.pad.cut(record.bytes, kept * stored_item);
                self.pad.row(filler, &self.value, (plan.width - kept) * item, |filler| {
                    ragged.conversion().write(part, filler)
                })
            })
        })?;
        let values = DenseBatch::trusted(data, plan.shape(ragged.item_shape()));
        PaddedBatch::from_parts(values, plan.lengths(), self.pad.padding_side())
    }

    fn plan(&self, indices: &[u64]) -> Result<super::pad::Plan> {
        let lengths = self.ragged.lengths(indices)?;
        self.pad.plan(&lengths).map_err(|error| {
            let limit = self.pad.limit();
            let long = lengths.iter().position(|&length| length > limit).and_then(|at| indices.get(at));
            let error = error.at_path(self.ragged.store().path());
            match long {
                Some(&index) => error.for_record(index),
                None => error,
            }
        })
    }
}

impl Source for Padded {
    fn len(&self) -> u64 {
        self.ragged.len()
    }

    fn gather(&self, request: &Request<'_>) -> Result<Column> {
        self.gather_batch(request).map(Column::Padded)
    }

    fn batch_bytes(&self, indices: &[u64]) -> Result<u64> {
        let item = self.ragged.schema().item_elements() * self.ragged.dtype().size();
        Ok(self.plan(indices)?.elements(item).map_or(u64::MAX, |bytes| bytes as u64))
    }

    fn advise(&self, indices: &[u64]) {
        self.ragged.advise(indices);
    }

    fn describe(&self) -> String {
        format!("{} {}", self.ragged.describe(), self.pad)
    }
}
