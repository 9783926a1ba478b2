use super::DenseBatch;
use super::ragged_batch::to_i32;
use crate::error::{Error, Result};

/// Where a record, or a part of a split one, lies in a packed batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Piece {
    /// The record: its position in the batch's indices.
    pub record: usize,
    /// The first of its rows that is here; not 0 only for the later parts of a split record.
    pub first: usize,
    /// The packed row.
    pub row: usize,
    /// Where in the packed row it starts.
    pub start: usize,
    /// How long it is.
    pub length: usize,
}

/// Several ragged records to each row of one length.
///
/// Every piece is a sequence of its own: [`PackedBatch::segment_ids`] and [`PackedBatch::cu_seqlens`] keep attention
/// inside it, [`PackedBatch::position_ids`] count from its start. A row's pieces lie one after the other from the
/// row's start; what remains is padding.
#[derive(Clone, Debug)]
pub struct PackedBatch {
    values: DenseBatch,
    pieces: Vec<Piece>,
    records: usize,
}

impl PackedBatch {
    /// A batch from its values `[rows, row_length, *item_shape]`, the pieces in order of row and start, and the
    /// number of records that they come from.
    ///
    /// # Errors
    ///
    /// When the pieces of a row do not follow each other from its start, or do not fit it, or rows are longer than
    /// 2^31 - 1.
    pub fn from_parts(values: DenseBatch, pieces: Vec<Piece>, records: usize) -> Result<Self> {
        let &[rows, row_length, ..] = values.shape() else {
            return Err(Error::invalid(format!("a packed batch has no shape {:?}", values.shape())));
        };
        let mut next = (0, 0);
        for piece in &pieces {
            if piece.row > next.0 {
                next = (piece.row, 0);
            }
            let end = piece.start.checked_add(piece.length).filter(|&end| end <= row_length);
            let (true, Some(end)) = ((piece.row, piece.start) == next && piece.row < rows, end) else {
                return Err(Error::invalid(format!(
                    "{piece:?} does not follow {next:?} (row, start) in {rows} rows of {row_length}"
                )));
            };
            next.1 = end;
        }
        if i32::try_from(row_length).is_err() || i32::try_from(pieces.len()).is_err() {
            return Err(Error::invalid(format!("rows of {row_length} are too long for 32-bit position ids")));
        }
        Ok(Self { values, pieces, records })
    }

    /// Records that were packed.
    #[must_use]
    pub fn records(&self) -> usize {
        self.records
    }

    /// Packed rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.values.records()
    }

    /// The length of every packed row.
    #[must_use]
    pub fn row_length(&self) -> usize {
        self.values.shape().get(1).copied().unwrap_or(0)
    }

    /// The packed elements, of shape `[rows, row_length, *item_shape]`.
    #[must_use]
    pub fn values(&self) -> &DenseBatch {
        &self.values
    }

    /// Where each record lies, in order of row and start.
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Places that hold data; the other `rows * row_length - used` are padding.
    #[must_use]
    pub fn used(&self) -> usize {
        self.pieces.iter().map(|piece| piece.length).sum()
    }

    /// Which sequence of its row a place belongs to, counted from 1; 0 for padding. Of shape `[rows, row_length]`.
    #[must_use]
    pub fn segment_ids(&self) -> Vec<i32> {
        let mut segment = (0, 0);
        self.each_place(|piece, places| {
            segment = if piece.row == segment.0 { (piece.row, segment.1 + 1) } else { (piece.row, 1) };
            places.fill(segment.1);
        })
    }

    /// The place within its sequence, counted from 0; 0 for padding. Of shape `[rows, row_length]`.
    ///
    /// The later parts of a split record start at 0 again, so no position is beyond the row's length.
    #[must_use]
    pub fn position_ids(&self) -> Vec<i32> {
        self.each_place(|_, places| {
            for (place, position) in places.iter_mut().zip(0..) {
                *place = position;
            }
        })
    }

    /// Where the sequences of packed row `row` start, and where the last ends: `[0]` for an empty row.
    #[must_use]
    pub fn row_cu_seqlens(&self, row: usize) -> Vec<i32> {
        let ends =
            self.pieces.iter().filter(|piece| piece.row == row).map(|piece| piece.start + piece.length);
        // The constructor saw that the row's length fits.
        std::iter::once(0).chain(ends.map(|end| i32::try_from(end).unwrap_or(i32::MAX))).collect()
    }

    /// Where each sequence starts, and where the last ends, for all rows laid one after the other
    /// (`[rows * row_length, *item_shape]`). The padding of a row counts as one more sequence, since the numbers
    /// leave no gaps.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::LimitExceeded`](crate::ErrorKind::LimitExceeded) when there are more than 2^31 - 1 places.
    pub fn cu_seqlens(&self) -> Result<Vec<i32>> {
        let row_length = self.row_length();
        let mut ends = vec![0_i64];
        let mut push = |end: usize| {
            let end = i64::try_from(end).unwrap_or(i64::MAX);
            if ends.last() != Some(&end) {
                ends.push(end);
            }
        };
        let mut row = 0;
        for piece in &self.pieces {
            while row < piece.row {
                row += 1;
                push(row * row_length);
            }
            push(row * row_length + piece.start + piece.length);
        }
        while row < self.rows() {
            row += 1;
            push(row * row_length);
        }
        to_i32(&ends)
    }

    /// The values, the pieces and the number of records.
    #[must_use]
    pub fn into_parts(self) -> (DenseBatch, Vec<Piece>, usize) {
        (self.values, self.pieces, self.records)
    }

    /// Zeros for padding, and for each piece in turn what `write` puts into its places.
    fn each_place(&self, mut write: impl FnMut(&Piece, &mut [i32])) -> Vec<i32> {
        let row_length = self.row_length();
        let mut ids = vec![0; self.rows() * row_length];
        for piece in &self.pieces {
            let start = piece.row * row_length + piece.start;
            if let Some(places) = ids.get_mut(start..start + piece.length) {
                write(piece, places);
            }
        }
        ids
    }
}
