use super::pack::{elements, part};
use super::{Column, DenseBatch, Pack, PackedBatch, Ragged, Request, Source};
use crate::buffer::Filler;
use crate::error::Result;

/// Ragged records that are packed while they are gathered, made by [`Ragged::packed`].
///
/// The records are visited in the order in which they lie in the packed rows and are copied (or decoded) right into
/// their places. A split record is read once for each of its pieces.
#[derive(Clone, Debug)]
pub struct Packed {
    ragged: Ragged,
    pack: Pack,
    value: Vec<u8>,
}

impl Ragged {
    /// A source of these records, packed into rows of one length.
    ///
    /// # Errors
    ///
    /// When the value is none of the elements' type or the rows have no place.
    pub fn packed(&self, pack: Pack) -> Result<Packed> {
        pack.check()?;
        let value = pack.padding().encode(self.dtype())?;
        Ok(Packed { ragged: self.clone(), pack, value })
    }
}

impl Packed {
    /// The records below.
    #[must_use]
    pub fn ragged(&self) -> &Ragged {
        &self.ragged
    }

    /// Gathers the records at `indices`, packed.
    ///
    /// # Errors
    ///
    /// When an index is not below the number of records, a record is longer than a row and is not to be split, more
    /// rows are needed than there are to be, or stored data are damaged.
    pub fn batch(&self, indices: &[u64]) -> Result<PackedBatch> {
        self.gather_batch(&Request::new(indices))
    }

    fn gather_batch(&self, request: &Request<'_>) -> Result<PackedBatch> {
        let (ragged, pack) = (&self.ragged, &self.pack);
        let plan = self.plan(request.indices)?;
        let schema = ragged.schema();
        let item_bytes = schema.item_elements() * ragged.dtype().size();
        let elements = elements(&plan, pack, schema.item_elements())?;
        let indices: Vec<u64> =
            plan.pieces.iter().filter_map(|piece| request.indices.get(piece.record).copied()).collect();
        let data = request.memory.room(ragged.dtype(), elements)?.fill(|room| {
            let mut filler = Filler::new(room);
            ragged.store().visit(&indices, |at, stored| {
                pack.pad_up_to(&plan, item_bytes, &self.value, &mut filler, at)?;
                let Some(piece) = plan.pieces.get(at) else { return Ok(()) };
                let part = part(stored, piece, schema.item_bytes());
                ragged.conversion().write(part, &mut filler).map_err(|error| {
                    let index = indices.get(at).copied().unwrap_or(0);
                    error.at_path(ragged.store().path()).for_record(index)
                })
            })?;
            pack.pad_up_to(&plan, item_bytes, &self.value, &mut filler, plan.pieces.len())?;
            filler.finish()
        })?;
        let shape = [&[plan.rows, pack.row_length()], ragged.item_shape()].concat();
        PackedBatch::from_parts(DenseBatch::trusted(data, shape), plan.pieces, request.indices.len())
    }

    fn plan(&self, indices: &[u64]) -> Result<super::pack::Plan> {
        let lengths = self.ragged.lengths(indices)?;
        self.pack.plan(&lengths).map_err(|error| {
            let long = lengths.iter().position(|&length| length > self.pack.row_length());
            let error = error.at_path(self.ragged.store().path());
            match long.filter(|_| !self.pack.splits()).and_then(|at| indices.get(at)) {
                Some(&index) => error.for_record(index),
                None => error,
            }
        })
    }
}

impl Source for Packed {
    fn len(&self) -> u64 {
        self.ragged.len()
    }

    fn gather(&self, request: &Request<'_>) -> Result<Column> {
        self.gather_batch(request).map(Column::Packed)
    }

    fn batch_bytes(&self, indices: &[u64]) -> Result<u64> {
        let plan = self.plan(indices)?;
        let item = self.ragged.schema().item_elements();
        Ok(elements(&plan, &self.pack, item)? as u64 * self.ragged.dtype().size() as u64)
    }

    fn advise(&self, indices: &[u64]) {
        self.ragged.advise(indices);
    }

    fn describe(&self) -> String {
        format!("{} {}", self.ragged.describe(), self.pack)
    }
}
