use super::number::Number;
use super::{DenseBatch, PaddedBatch, RaggedBatch, Side};
use crate::buffer::{Buffer, Filler};
use crate::error::{Error, ErrorKind, Result};

/// Which part of a record that is too long is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Keep {
    /// Its first rows.
    Start,
    /// Its last rows.
    End,
}

/// How ragged records are padded to one length.
///
/// | | width |
/// |---|---|
/// | [`Pad::to_longest`] | that of the batch's longest record |
/// | `.multiple_of(8)` | rounded up: some kernels are fast only then, and there are fewer different shapes |
/// | `.at_most(512)` | bounded: a longer record is refused, or cut with [`Pad::truncate`] |
/// | [`Pad::to_length`] | always the same |
///
/// Padding is 0 on the right unless told otherwise.
///
/// ```
/// use loaderx_core::Buffer;
/// use loaderx_core::view::{Keep, Pad, RaggedBatch};
///
/// # fn main() -> loaderx_core::Result<()> {
/// let values = Buffer::from(vec![1_i64, 2, 3, 4, 5, 6]);
/// let batch = RaggedBatch::from_parts(values, vec![0, 1, 6], vec![])?;
///
/// let padded = batch.pad(&Pad::to_longest().value(-1))?;
/// assert_eq!(padded.values().as_slice::<i64>()?, [1, -1, -1, -1, -1, 2, 3, 4, 5, 6]);
/// assert_eq!(padded.lengths(), [1, 5]);
/// assert_eq!(padded.mask().as_slice::<u8>()?, [1, 0, 0, 0, 0, 1, 1, 1, 1, 1]);
///
/// let padded = batch.pad(&Pad::to_length(2).truncate(Keep::End).left())?;
/// assert_eq!(padded.values().as_slice::<i64>()?, [0, 1, 5, 6]);
///
/// assert!(batch.pad(&Pad::to_length(2)).is_err()); // the second record is too long
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pad {
    // `None`: that of the longest record.
    length: Option<usize>,
    multiple: usize,
    at_most: Option<usize>,
    truncate: Option<Keep>,
    side: Side,
    value: Number,
}

impl Pad {
    /// To the length of the batch's longest record.
    #[must_use]
    pub fn to_longest() -> Self {
        Self {
            length: None,
            multiple: 1,
            at_most: None,
            truncate: None,
            side: Side::Right,
            value: Number::Int(0),
        }
    }

    /// To `length` rows in every batch.
    #[must_use]
    pub fn to_length(length: usize) -> Self {
        Self { length: Some(length), ..Self::to_longest() }
    }

    /// Rounds the width up to a multiple of `multiple`.
    #[must_use]
    pub fn multiple_of(mut self, multiple: usize) -> Self {
        self.multiple = multiple;
        self
    }

    /// Bounds the width.
    #[must_use]
    pub fn at_most(mut self, length: usize) -> Self {
        self.at_most = Some(length);
        self
    }

    /// Cuts records that are too long instead of refusing them.
    #[must_use]
    pub fn truncate(mut self, keep: Keep) -> Self {
        self.truncate = Some(keep);
        self
    }

    /// Pads on the left.
    #[must_use]
    pub fn left(self) -> Self {
        self.side(Side::Left)
    }

    /// Pads on this side.
    #[must_use]
    pub fn side(mut self, side: Side) -> Self {
        self.side = side;
        self
    }

    /// The value of every padded element.
    #[must_use]
    pub fn value(mut self, value: impl Into<Number>) -> Self {
        self.value = value.into();
        self
    }

    /// The width for records of these lengths, and how many rows of each are kept.
    pub(super) fn plan(&self, lengths: &[usize]) -> Result<Plan> {
        self.check()?;
        let limit = self.limit();
        if self.truncate.is_none()
            && let Some((at, length)) = lengths.iter().enumerate().find(|&(_, &length)| length > limit)
        {
            return Err(Error::new(
                ErrorKind::LimitExceeded,
                format!("record {at} of the batch has {length} rows, more than the {limit} it may have"),
            )
            .with_hint("cut it with Pad::truncate, allow more, or leave such records out"));
        }
        let kept: Vec<usize> = lengths.iter().map(|&length| length.min(limit)).collect();
        let width = match self.length {
            Some(length) => length,
            None => {
                let longest = kept.iter().copied().max().unwrap_or(0);
                longest.checked_next_multiple_of(self.multiple).ok_or_else(|| {
                    Error::invalid(format!(
                        "{longest} rows cannot be rounded up to a multiple of {}",
                        self.multiple
                    ))
                })?
            }
        };
        Ok(Plan { width, kept })
    }

    /// The most rows that a record may have, or may keep.
    pub(super) fn limit(&self) -> usize {
        self.length.or(self.at_most).unwrap_or(usize::MAX)
    }

    /// Refuses settings that contradict each other.
    pub(super) fn check(&self) -> Result<()> {
        if self.multiple == 0 {
            return Err(Error::invalid("a width cannot be a multiple of 0"));
        }
        for bound in [self.length, self.at_most].into_iter().flatten() {
            if !bound.is_multiple_of(self.multiple) {
                return Err(Error::invalid(format!(
                    "the width {bound} is not a multiple of {}",
                    self.multiple
                )));
            }
        }
        if let Some((length, at_most)) = self.length.zip(self.at_most)
            && length > at_most
        {
            return Err(Error::invalid(format!("the width {length} is larger than the bound {at_most}")));
        }
        Ok(())
    }

    pub(super) fn padding(&self) -> Number {
        self.value
    }

    pub(super) fn padding_side(&self) -> Side {
        self.side
    }

    /// The part of a record of `stored` (in bytes) that is kept when `kept` bytes are.
    pub(super) fn cut<'a>(&self, stored: &'a [u8], kept: usize) -> &'a [u8] {
        let part = match self.truncate {
            Some(Keep::End) => stored.get(stored.len().saturating_sub(kept)..),
            _ => stored.get(..kept),
        };
        part.unwrap_or(stored)
    }

    /// Writes a row: the record by `write`, and `pad` elements of `value` on the padding's side.
    pub(super) fn row(
        &self,
        filler: &mut Filler<'_>,
        value: &[u8],
        pad: usize,
        write: impl FnOnce(&mut Filler<'_>) -> Result<()>,
    ) -> Result<()> {
        match self.side {
            Side::Left => {
                filler.repeat(value, pad)?;
                write(filler)
            }
            Side::Right => {
                write(filler)?;
                filler.repeat(value, pad)
            }
        }
    }
}

impl std::fmt::Display for Pad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.length {
            Some(length) => write!(f, "pad(length={length}")?,
            None => write!(f, "pad(longest")?,
        }
        if self.multiple != 1 {
            write!(f, ", multiple_of={}", self.multiple)?;
        }
        if let Some(at_most) = self.at_most {
            write!(f, ", at_most={at_most}")?;
        }
        if let Some(keep) = self.truncate {
            write!(f, ", keep={}", if keep == Keep::Start { "start" } else { "end" })?;
        }
        write!(f, ", {}, value={})", if self.side == Side::Left { "left" } else { "right" }, self.value)
    }
}

/// What [`Pad::plan`] found.
pub(super) struct Plan {
    pub(super) width: usize,
    pub(super) kept: Vec<usize>,
}

impl Plan {
    /// Elements of the padded batch; `None` when it is too large.
    pub(super) fn elements(&self, item_elements: usize) -> Option<usize> {
        self.kept.len().checked_mul(self.width)?.checked_mul(item_elements)
    }

    pub(super) fn lengths(&self) -> Vec<i64> {
        // Lengths of records that exist are far below the limit.
        self.kept.iter().map(|&kept| i64::try_from(kept).unwrap_or(i64::MAX)).collect()
    }

    pub(super) fn shape(&self, item_shape: &[usize]) -> Vec<usize> {
        [&[self.kept.len(), self.width], item_shape].concat()
    }
}

impl RaggedBatch {
    /// Pads the records to one length.
    ///
    /// To pad records while they are gathered, without a second copy, use [`Ragged::padded`](super::Ragged::padded).
    ///
    /// # Errors
    ///
    /// When a record is too long and is not to be cut, the value is none of the elements' type, or settings
    /// contradict each other.
    pub fn pad(&self, pad: &Pad) -> Result<PaddedBatch> {
        let value = pad.padding().encode(self.dtype())?;
        let lengths: Vec<usize> = self.lengths().collect();
        let plan = pad.plan(&lengths)?;
        let item = self.item_shape().iter().product::<usize>();
        let item_bytes = item * self.dtype().size();
        let elements = plan.elements(item).ok_or_else(|| too_wide(plan.width, lengths.len()))?;
        let data = Buffer::fill(self.dtype(), elements, |room| {
            let mut filler = Filler::new(room);
            for (record, &kept) in self.record_bytes().zip(&plan.kept) {
                let part = pad.cut(record, kept * item_bytes);
                pad.row(&mut filler, &value, (plan.width - kept) * item, |filler| filler.copy(part))?;
            }
            filler.finish()
        })?;
        let values = DenseBatch::trusted(data, plan.shape(self.item_shape()));
        PaddedBatch::from_parts(values, plan.lengths(), pad.side)
    }
}

pub(super) fn too_wide(width: usize, records: usize) -> Error {
    Error::new(ErrorKind::LimitExceeded, format!("a batch of {records} records of {width} rows is too large"))
        .with_hint("bound the width with Pad::at_most or use a smaller batch")
}
