use std::collections::BTreeSet;

use super::number::Number;
use super::{DenseBatch, PackedBatch, Piece, RaggedBatch};
use crate::buffer::{Buffer, Filler};
use crate::error::{Error, ErrorKind, Result};

/// Which of the rows that have room takes the next record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fit {
    /// The first one.
    #[default]
    First,
    /// The one that it leaves the least room in.
    Best,
}

/// How ragged records are packed into rows of one length.
///
/// Records are placed in the order of the batch (or the longest first), each whole in one row. An empty record takes
/// no place.
///
/// ```
/// use loaderx_core::Buffer;
/// use loaderx_core::view::{Pack, RaggedBatch};
///
/// # fn main() -> loaderx_core::Result<()> {
/// let values = Buffer::from(vec![11_i64, 12, 13, 21, 22, 23, 31, 32]);
/// let batch = RaggedBatch::from_parts(values, vec![0, 3, 6, 8], vec![])?;
/// let packed = batch.pack(&Pack::into_rows_of(5))?;
/// assert_eq!(packed.values().shape(), [2, 5]);
/// assert_eq!(packed.values().as_slice::<i64>()?, [11, 12, 13, 31, 32, 21, 22, 23, 0, 0]);
/// assert_eq!(packed.segment_ids(), [1, 1, 1, 2, 2, 1, 1, 1, 0, 0]);
/// assert_eq!(packed.position_ids(), [0, 1, 2, 0, 1, 0, 1, 2, 0, 0]);
/// assert_eq!(packed.row_cu_seqlens(0), [0, 3, 5]);
/// assert_eq!(packed.cu_seqlens()?, [0, 3, 5, 8, 10]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pack {
    row_length: usize,
    rows: Option<usize>,
    fit: Fit,
    longest_first: bool,
    split: bool,
    value: Number,
}

impl Pack {
    /// Into rows of `row_length`.
    #[must_use]
    pub fn into_rows_of(row_length: usize) -> Self {
        Self {
            row_length,
            rows: None,
            fit: Fit::First,
            longest_first: false,
            split: false,
            value: Number::Int(0),
        }
    }

    /// Which of the rows that have room takes a record.
    #[must_use]
    pub fn fit(mut self, fit: Fit) -> Self {
        self.fit = fit;
        self
    }

    /// Places the longest records first, which leaves less padding; records of one length stay in order.
    #[must_use]
    pub fn longest_first(mut self) -> Self {
        self.longest_first = true;
        self
    }

    /// Splits records that are longer than a row into several pieces, instead of refusing them: as many full rows as
    /// it takes, and the rest like a record of its own.
    #[must_use]
    pub fn split_long(mut self) -> Self {
        self.split = true;
        self
    }

    /// Makes exactly `rows` rows in every batch: empty ones are added, and records that need more are refused.
    #[must_use]
    pub fn rows(mut self, rows: usize) -> Self {
        self.rows = Some(rows);
        self
    }

    /// The value of every padded element.
    #[must_use]
    pub fn value(mut self, value: impl Into<Number>) -> Self {
        self.value = value.into();
        self
    }

    pub(super) fn padding(&self) -> Number {
        self.value
    }

    pub(super) fn splits(&self) -> bool {
        self.split
    }

    pub(super) fn row_length(&self) -> usize {
        self.row_length
    }

    /// Refuses rows without a place or with more than 32-bit positions can number.
    pub(super) fn check(&self) -> Result<()> {
        if self.row_length == 0 || i32::try_from(self.row_length).is_err() {
            return Err(Error::invalid(format!("records cannot be packed into rows of {}", self.row_length)));
        }
        Ok(())
    }

    /// Where records of these lengths go.
    pub(super) fn plan(&self, lengths: &[usize]) -> Result<Plan> {
        self.check()?;
        let mut order: Vec<usize> = (0..lengths.len()).collect();
        if self.longest_first {
            order.sort_by_key(|&record| std::cmp::Reverse(lengths.get(record)));
        }
        let mut rows = Rows::new(self.row_length, self.fit);
        let mut pieces = Vec::with_capacity(lengths.len());
        for record in order {
            let length = lengths.get(record).copied().unwrap_or(0);
            if length > self.row_length && !self.split {
                return Err(Error::new(
                    ErrorKind::LimitExceeded,
                    format!(
                        "record {record} of the batch has {length} rows and does not fit into {}",
                        self.row_length
                    ),
                )
                .with_hint("split it with Pack::split_long, make rows longer, or leave such records out"));
            }
            let mut first = 0;
            while first < length {
                let part = (length - first).min(self.row_length);
                let (row, start) = rows.place(part);
                pieces.push(Piece { record, first, row, start, length: part });
                first += part;
            }
        }
        pieces.sort_unstable_by_key(|piece| (piece.row, piece.start));
        let needed = rows.free.len();
        let rows = self.rows.unwrap_or(needed);
        if needed > rows {
            return Err(Error::new(
                ErrorKind::LimitExceeded,
                format!(
                    "the batch's records need {needed} rows of {}, there are to be {rows}",
                    self.row_length
                ),
            )
            .with_hint("draw fewer records for a batch, or allow more rows"));
        }
        Ok(Plan { pieces, rows })
    }

    /// Writes the padding up to the start of piece `at`, or to the end behind the last one.
    pub(super) fn pad_up_to(
        &self,
        plan: &Plan,
        item_bytes: usize,
        value: &[u8],
        filler: &mut Filler<'_>,
        at: usize,
    ) -> Result<()> {
        let place = match plan.pieces.get(at) {
            Some(piece) => piece.row * self.row_length + piece.start,
            None => plan.rows * self.row_length,
        };
        let written = plan.rows * self.row_length - filler.remaining() / item_bytes;
        filler.repeat(value, (place - written) * item_bytes / value.len())
    }
}

impl std::fmt::Display for Pack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let fit = if self.fit == Fit::First { "first" } else { "best" };
        write!(f, "pack(row_length={}, fit={fit}", self.row_length)?;
        if self.longest_first {
            write!(f, ", longest first")?;
        }
        if self.split {
            write!(f, ", split")?;
        }
        if let Some(rows) = self.rows {
            write!(f, ", rows={rows}")?;
        }
        write!(f, ", value={})", self.value)
    }
}

/// What [`Pack::plan`] found: the pieces in order of row and start.
pub(super) struct Plan {
    pub(super) pieces: Vec<Piece>,
    pub(super) rows: usize,
}

/// The rows while records are placed.
struct Rows {
    row_length: usize,
    fit: Fit,
    // Free places of each row.
    free: Vec<usize>,
    // Rows below it are full; saves first fit from looking at them again.
    open: usize,
    // (free places, row) of those that have some; kept for best fit only.
    by_free: BTreeSet<(usize, usize)>,
}

impl Rows {
    fn new(row_length: usize, fit: Fit) -> Self {
        Self { row_length, fit, free: Vec::new(), open: 0, by_free: BTreeSet::new() }
    }

    /// Row and start for a piece of `length`, which is at most a row's.
    fn place(&mut self, length: usize) -> (usize, usize) {
        let row = match self.fit {
            Fit::First => {
                while self.free.get(self.open) == Some(&0) {
                    self.open += 1;
                }
                (self.open..self.free.len())
                    .find(|&row| self.free.get(row).is_some_and(|&free| free >= length))
            }
            // Among equally good ones the first row.
            Fit::Best => self.by_free.range((length, 0)..).next().map(|&(_, row)| row),
        };
        let row = row.unwrap_or_else(|| {
            self.free.push(self.row_length);
            self.free.len() - 1
        });
        let Some(free) = self.free.get_mut(row) else {
            return (row, 0);
        };
        let start = self.row_length - *free;
        if self.fit == Fit::Best {
            self.by_free.remove(&(*free, row));
            if *free > length {
                self.by_free.insert((*free - length, row));
            }
        }
        *free -= length;
        (row, start)
    }
}

impl RaggedBatch {
    /// Packs the records into rows of one length.
    ///
    /// To pack records while they are gathered, without a second copy, use [`Ragged::packed`](super::Ragged::packed).
    ///
    /// # Errors
    ///
    /// When a record is longer than a row and is not to be split, more rows are needed than there are to be, or the
    /// value is none of the elements' type.
    pub fn pack(&self, pack: &Pack) -> Result<PackedBatch> {
        let value = pack.padding().encode(self.dtype())?;
        let lengths: Vec<usize> = self.lengths().collect();
        let plan = pack.plan(&lengths)?;
        let item = self.item_shape().iter().product::<usize>();
        let item_bytes = item * self.dtype().size();
        let elements = elements(&plan, pack, item)?;
        let records: Vec<&[u8]> = self.record_bytes().collect();
        let data = Buffer::fill(self.dtype(), elements, |room| {
            let mut filler = Filler::new(room);
            for (at, piece) in plan.pieces.iter().enumerate() {
                pack.pad_up_to(&plan, item_bytes, &value, &mut filler, at)?;
                let record = records.get(piece.record).copied().unwrap_or(&[]);
                filler.copy(part(record, piece, item_bytes))?;
            }
            pack.pad_up_to(&plan, item_bytes, &value, &mut filler, plan.pieces.len())?;
            filler.finish()
        })?;
        let shape = [&[plan.rows, pack.row_length], self.item_shape()].concat();
        PackedBatch::from_parts(DenseBatch::trusted(data, shape), plan.pieces, self.records())
    }
}

/// Elements of the packed batch.
pub(super) fn elements(plan: &Plan, pack: &Pack, item: usize) -> Result<usize> {
    let elements = plan.rows.checked_mul(pack.row_length).and_then(|places| places.checked_mul(item));
    elements.filter(|&elements| elements <= isize::MAX.unsigned_abs() / 8).ok_or_else(|| {
        Error::new(
            ErrorKind::LimitExceeded,
            format!("{} packed rows of {} are too large a batch", plan.rows, pack.row_length),
        )
        .with_hint("use a smaller batch")
    })
}

/// The bytes of `record` that `piece` is about.
pub(super) fn part<'a>(record: &'a [u8], piece: &Piece, item_bytes: usize) -> &'a [u8] {
    record.get(piece.first * item_bytes..(piece.first + piece.length) * item_bytes).unwrap_or(&[])
}
