use crate::buffer::Buffer;
use crate::dtype::{DType, Element};
use crate::error::{Error, ErrorKind, Result};

/// Records of their own lengths, one after the other without gaps.
///
/// Record `i` is the rows `offsets[i]..offsets[i + 1]`, a row being `item_shape` elements of the values; for
/// sequences of scalars (`item_shape` `[]`, a text's tokens) a row is one element.
#[derive(Clone, Debug)]
pub struct RaggedBatch {
    values: Buffer,
    offsets: Vec<i64>,
    item_shape: Vec<usize>,
}

impl RaggedBatch {
    /// A batch from its values, its `records + 1` offsets in rows, and the shape of a row.
    ///
    /// # Errors
    ///
    /// When the offsets do not ascend from 0 to the number of rows, or a row has no elements.
    pub fn from_parts(values: Buffer, offsets: Vec<i64>, item_shape: Vec<usize>) -> Result<Self> {
        let item = item_shape.iter().try_fold(1_usize, |product, &side| product.checked_mul(side));
        let item = item.filter(|&item| item > 0).ok_or_else(|| {
            Error::invalid(format!("rows of shape {item_shape:?} have no elements to count them by"))
        })?;
        let rows = i64::try_from(values.len() / item).ok().filter(|_| values.len().is_multiple_of(item));
        if offsets.first() != Some(&0) || offsets.last().copied() != rows || !offsets.is_sorted() {
            return Err(Error::invalid(format!(
                "the offsets do not divide {} elements into records of rows of shape {item_shape:?}",
                values.len()
            )));
        }
        Ok(Self { values, offsets, item_shape })
    }

    /// Records in the batch.
    #[must_use]
    pub fn records(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Rows of all records together.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.values.len() / self.item_elements()
    }

    /// Rows of record `i`; `None` when there are not so many records.
    #[must_use]
    pub fn length(&self, i: usize) -> Option<usize> {
        self.range(i).map(|range| range.len())
    }

    /// Rows of each record.
    pub fn lengths(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.ranges().map(|range| range.len())
    }

    /// Rows of the longest record, 0 without records.
    #[must_use]
    pub fn max_length(&self) -> usize {
        self.lengths().max().unwrap_or(0)
    }

    /// The type of each element.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.values.dtype()
    }

    /// The shape of one row; empty for sequences of scalars.
    #[must_use]
    pub fn item_shape(&self) -> &[usize] {
        &self.item_shape
    }

    /// The shape of the values: `[rows, *item_shape]`.
    #[must_use]
    pub fn values_shape(&self) -> Vec<usize> {
        [&[self.rows()], self.item_shape.as_slice()].concat()
    }

    /// The elements of all records.
    #[must_use]
    pub fn values(&self) -> &Buffer {
        &self.values
    }

    /// Where each record starts, in rows, and where the last ends: `records() + 1` numbers.
    #[must_use]
    pub fn offsets(&self) -> &[i64] {
        &self.offsets
    }

    /// The offsets as variable-length attention kernels want them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::LimitExceeded`] when there are more than 2^31 - 1 rows.
    pub fn cu_seqlens(&self) -> Result<Vec<i32>> {
        to_i32(&self.offsets)
    }

    /// The elements of record `i`, without a copy; truth values as `u8`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SchemaMismatch`] when they are of another type; [`ErrorKind::OutOfRange`] when there are not so
    /// many records.
    pub fn record<T: Element>(&self, i: usize) -> Result<&[T]> {
        let values = self.values.as_slice::<T>()?;
        let item = self.item_elements();
        let range = self.range(i).map(|range| range.start * item..range.end * item);
        range.and_then(|range| values.get(range)).ok_or_else(|| {
            Error::new(ErrorKind::OutOfRange, format!("record {i} of a batch of {}", self.records()))
        })
    }

    /// The elements of each record in turn, without a copy; truth values as `u8`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SchemaMismatch`] when they are of another type.
    pub fn iter<T: Element>(&self) -> Result<impl ExactSizeIterator<Item = &[T]> + '_> {
        let values = self.values.as_slice::<T>()?;
        let item = self.item_elements();
        Ok(self.ranges().map(move |range| values.get(range.start * item..range.end * item).unwrap_or(&[])))
    }

    /// The values as a vector, as [`Buffer::into_vec`], the offsets and the shape of a row.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SchemaMismatch`] when the elements are of another type.
    pub fn into_vec<T: Element>(self) -> Result<(Vec<T>, Vec<i64>, Vec<usize>)> {
        Ok((self.values.into_vec()?, self.offsets, self.item_shape))
    }

    /// The values, the offsets and the shape of a row.
    #[must_use]
    pub fn into_parts(self) -> (Buffer, Vec<i64>, Vec<usize>) {
        (self.values, self.offsets, self.item_shape)
    }

    /// The bytes of each record in turn.
    pub(super) fn record_bytes(&self) -> impl ExactSizeIterator<Item = &[u8]> + '_ {
        let bytes = self.values.as_bytes();
        let item = self.item_elements() * self.dtype().size();
        self.ranges().map(move |range| bytes.get(range.start * item..range.end * item).unwrap_or(&[]))
    }

    fn item_elements(&self) -> usize {
        self.item_shape.iter().product()
    }

    fn range(&self, i: usize) -> Option<std::ops::Range<usize>> {
        // Not negative and within the values, as the constructor saw.
        let start = usize::try_from(*self.offsets.get(i)?).ok()?;
        let end = usize::try_from(*self.offsets.get(i.checked_add(1)?)?).ok()?;
        Some(start..end)
    }

    fn ranges(&self) -> impl ExactSizeIterator<Item = std::ops::Range<usize>> + '_ {
        (0..self.records()).map(|i| self.range(i).unwrap_or(0..0))
    }
}

/// Offsets in 32 bits.
pub(super) fn to_i32(offsets: &[i64]) -> Result<Vec<i32>> {
    let narrow = |&offset: &i64| {
        i32::try_from(offset).map_err(|_| {
            Error::new(
                ErrorKind::LimitExceeded,
                format!(
                    "cu_seqlens are 32-bit numbers and cannot say {offset}, the most possible is {}",
                    i32::MAX
                ),
            )
            .with_hint("use the 64-bit offsets or a smaller batch")
        })
    };
    // They ascend, so the last one decides; no work is lost on a batch that is too large.
    if let Some(last) = offsets.last() {
        narrow(last)?;
    }
    offsets.iter().map(narrow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_past_31_bits_are_an_error_and_never_wrap() {
        assert_eq!(to_i32(&[0, 5, i64::from(i32::MAX)]).unwrap(), [0, 5, i32::MAX]);
        let error = to_i32(&[0, 1 << 31]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        assert!(error.to_string().contains("2147483648"), "{error}");
    }
}
