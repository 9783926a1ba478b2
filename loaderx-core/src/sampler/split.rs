use super::permutation::Layout;
use super::random::Domain;
use super::{IndexMap, check_permutable};
use crate::error::{Error, Result};

/// One part of a random split, made by [`split`].
#[derive(Clone, Debug)]
pub struct Split {
    records: u64,
    start: u64,
    len: u64,
    seed: u64,
    layout: Layout,
}

#[expect(clippy::len_without_is_empty, reason = "no part is empty")]
impl Split {
    /// The number of records of this part.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }
}

/// Splits `records` records at random into parts of the given fractions; no record is in two of them.
///
/// Nothing the size of the data set is stored: a part is a range of positions of one permutation that `seed`
/// chooses, computed as it is asked for. Part `k` covers the positions between `records` times the sum of the
/// fractions before it and that sum with its own, both rounded to the nearest, so fractions that sum to 1 leave
/// no record out.
///
/// ```
/// use loaderx_core::sampler::{Cyclic, Pass, Sampler, split};
///
/// let [train, validation] = split(60_000, [0.9, 0.1], 42)?;
/// assert_eq!((train.len(), validation.len()), (54_000, 6_000));
/// let training = Cyclic::new(train.len(), 256, 42)?.over(train)?;
/// let evaluation = Pass::new(validation.len(), 256)?.over(validation)?;
/// # Ok::<(), loaderx_core::Error>(())
/// ```
///
/// # Errors
///
/// When a fraction is negative or not a number, the fractions sum to more than 1, a part would hold no record,
/// or `records` exceeds 2^40.
pub fn split<const N: usize>(records: u64, fractions: [f64; N], seed: u64) -> Result<[Split; N]> {
    check_permutable(records)?;
    let layout = Layout::new(records);
    let mut bounds = [(0, 0); N];
    let mut sum = 0.0;
    let mut start = 0;
    for (part, (bound, fraction)) in bounds.iter_mut().zip(fractions).enumerate() {
        if fraction.is_nan() || fraction < 0.0 {
            return Err(Error::invalid(format!("fraction {part} of a split is {fraction}"))
                .with_hint("fractions are numbers from 0 to 1"));
        }
        sum += fraction;
        // Decimal fractions such as 0.7 + 0.2 + 0.1 miss 1 by a rounding error.
        if sum > 1.0 + 1e-9 {
            return Err(Error::invalid(format!(
                "the fractions of a split sum to {sum} with fraction {part}"
            ))
            .with_hint("fractions sum to at most 1"));
        }
        let end = scale(records, sum).min(records);
        if end <= start {
            return Err(Error::invalid(format!(
                "part {part} of a split, a fraction of {fraction} of {records} records, holds none"
            )));
        }
        *bound = (start, end - start);
        start = end;
    }
    Ok(bounds.map(|(start, len)| Split { records, start, len, seed, layout: layout.clone() }))
}

/// `records * fraction`, rounded to the nearest: exact, since a length of at most 2^40 is.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the product lies in 0..2^41")]
fn scale(records: u64, fraction: f64) -> u64 {
    (records as f64 * fraction).round() as u64
}

impl IndexMap for Split {
    fn len(&self) -> u64 {
        self.len
    }

    fn records(&self) -> u64 {
        self.records
    }

    fn map(&self, positions: &mut [u64]) {
        for position in &mut *positions {
            *position += self.start;
        }
        self.layout.keyed(self.seed, Domain::Split, 0).map(positions);
    }

    fn describe(&self) -> String {
        format!("split(records={}, start={}, len={}, seed={})", self.records, self.start, self.len, self.seed)
    }
}
