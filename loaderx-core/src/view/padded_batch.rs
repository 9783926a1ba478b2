use super::DenseBatch;
use crate::buffer::Buffer;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};

/// On which side of a record its padding lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Side {
    /// Before the record: what generating models want, whose last position is the one that counts.
    Left,
    /// After the record.
    #[default]
    Right,
}

/// Ragged records padded to one length.
#[derive(Clone, Debug)]
pub struct PaddedBatch {
    values: DenseBatch,
    lengths: Vec<i64>,
    side: Side,
}

impl PaddedBatch {
    /// A batch from its values `[records, width, *item_shape]`, the rows of each record that are data, and the
    /// side of the padding.
    ///
    /// # Errors
    ///
    /// When there is not one length for each record, or one is negative or beyond the width.
    pub fn from_parts(values: DenseBatch, lengths: Vec<i64>, side: Side) -> Result<Self> {
        let &[records, width, ..] = values.shape() else {
            return Err(Error::invalid(format!("a padded batch has no shape {:?}", values.shape())));
        };
        let fits = |&length: &i64| usize::try_from(length).is_ok_and(|length| length <= width);
        if lengths.len() != records || !lengths.iter().all(fits) {
            return Err(Error::invalid(format!(
                "{} lengths do not describe {records} records padded to {width} rows",
                lengths.len()
            )));
        }
        Ok(Self { values, lengths, side })
    }

    /// Records in the batch.
    #[must_use]
    pub fn records(&self) -> usize {
        self.lengths.len()
    }

    /// Rows that every record was padded to.
    #[must_use]
    pub fn width(&self) -> usize {
        self.values.shape().get(1).copied().unwrap_or(0)
    }

    /// The padded elements, of shape `[records, width, *item_shape]`.
    #[must_use]
    pub fn values(&self) -> &DenseBatch {
        &self.values
    }

    /// Rows of each record that are data and not padding.
    #[must_use]
    pub fn lengths(&self) -> &[i64] {
        &self.lengths
    }

    /// On which side the padding is.
    #[must_use]
    pub fn side(&self) -> Side {
        self.side
    }

    /// Where there is data: truth values of shape `[records, width]`, 1 for data and 0 for padding.
    #[must_use]
    pub fn mask(&self) -> DenseBatch {
        let shape = vec![self.records(), self.width()];
        DenseBatch::trusted(Buffer::from_truth(self.mask_of::<u8>()), shape)
    }

    /// The mask as ones and zeros of a type, row by row: `records * width` of them.
    #[must_use]
    pub fn mask_of<T: Element + From<bool>>(&self) -> Vec<T> {
        let width = self.width();
        let (no, yes) = (T::from(false), T::from(true));
        let mut mask = Vec::with_capacity(self.records() * width);
        for &length in &self.lengths {
            // The constructor saw that it is at most the width.
            let length = usize::try_from(length).unwrap_or(0).min(width);
            let (before, after) = match self.side {
                Side::Left => (width - length, 0),
                Side::Right => (0, width - length),
            };
            mask.extend(std::iter::repeat_n(no, before));
            mask.extend(std::iter::repeat_n(yes, length));
            mask.extend(std::iter::repeat_n(no, after));
        }
        mask
    }

    /// The type of each element.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.values.dtype()
    }

    /// The values, the lengths and the side of the padding.
    #[must_use]
    pub fn into_parts(self) -> (DenseBatch, Vec<i64>, Side) {
        (self.values, self.lengths, self.side)
    }
}
