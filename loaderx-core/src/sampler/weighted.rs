use super::random::{Digest, Domain, Stream, low};
use super::{Sampler, check_batch, clip, index, prepare};
use crate::error::{Error, ErrorKind, Result};
use std::ops::Range;
use std::sync::Arc;

/// Draws with replacement in which each record's probability is its share of all weights.
///
/// The draws come from an alias table (Walker; built as Vose does), which costs 16 bytes a record and one look-up a
/// draw, however many records there are. Weights become whole numbers first, at a resolution of 2^-62 of their
/// sum, and everything behind that is exact integer arithmetic: a record of weight 0 is never drawn, and one of any
/// positive weight can be.
///
/// ```
/// use loaderx_core::sampler::{Sampler, Weighted};
///
/// let mut out = vec![];
/// Weighted::new(&[1.0, 0.0, 3.0], 3, 7)?.draw(0, &mut out);
/// assert!(!out.contains(&1));
/// # Ok::<(), loaderx_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Weighted {
    columns: Arc<[Column]>,
    total: u64,
    batch: usize,
    seed: u64,
    digest: u64,
}

/// A column of the alias table: it gives its own record below the mark, the other one above.
#[derive(Clone, Copy, Debug)]
struct Column {
    mark: u64,
    other: u32,
}

impl Weighted {
    /// A sampler over `weights.len()` records, `batch` indices a step; `seed` decides which.
    ///
    /// # Errors
    ///
    /// When a weight is negative, infinite or not a number, none is positive, `batch` is 0 or exceeds the number
    /// of records, or there are 2^32 records or more.
    pub fn new(weights: &[f64], batch: usize, seed: u64) -> Result<Self> {
        check_batch(weights.len() as u64, batch)?;
        if u32::try_from(weights.len()).is_err() {
            return Err(Error::new(
                ErrorKind::LimitExceeded,
                format!("{} weights are more than the limit of {}", weights.len(), u32::MAX),
            ));
        }
        let masses = masses(weights)?;
        let mut digest = Digest::new();
        masses.iter().for_each(|mass| digest.add(*mass));
        let total = masses.iter().sum();
        let columns = columns(&masses, total).into();
        Ok(Self { columns, total, batch, seed, digest: digest.finish() })
    }
}

/// The weights as whole numbers that sum to about 2^62.
fn masses(weights: &[f64]) -> Result<Vec<u64>> {
    let mut largest = 0.0_f64;
    for (record, weight) in weights.iter().enumerate() {
        if !weight.is_finite() || *weight < 0.0 {
            return Err(Error::invalid(format!("the weight of record {record} is {weight}"))
                .for_record(record as u64)
                .with_hint("weights are finite numbers from 0 up"));
        }
        largest = largest.max(*weight);
    }
    if largest == 0.0 {
        return Err(Error::invalid(format!("none of {} weights is positive", weights.len()))
            .with_hint("give at least one record a positive weight"));
    }
    // Relative to the largest, so that neither huge nor tiny weights leave the range of f64 in the sum.
    let sum: f64 = weights.iter().map(|weight| weight / largest).sum();
    let scale = 2.0_f64.powi(62) / sum;
    let mass = |weight: &f64| if *weight > 0.0 { whole(weight / largest * scale).max(1) } else { 0 };
    Ok(weights.iter().map(mass).collect())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounding down a number of 0..=2^62"
)]
fn whole(x: f64) -> u64 {
    x as u64
}

/// Fills every column to the height `total` with one record's mass or two: each record's mass is counted `n`
/// times, so that `n` columns hold it all exactly.
fn columns(masses: &[u64], total: u64) -> Vec<Column> {
    let n = masses.len() as u128;
    let full = u128::from(total);
    let mut left: Vec<u128> = masses.iter().map(|mass| u128::from(*mass) * n).collect();
    let mut columns: Vec<Column> =
        (0_u32..).take(masses.len()).map(|other| Column { mark: total, other }).collect();
    let (mut small, mut large): (Vec<u32>, Vec<u32>) =
        (0_u32..).take(masses.len()).partition(|i| left[*i as usize] < full);
    // What is left always averages `full` a column: while one has less, another has more.
    while let (Some(lesser), Some(&greater)) = (small.pop(), large.last()) {
        let own = left[lesser as usize];
        columns[lesser as usize] = Column { mark: low(own), other: greater };
        let rest = &mut left[greater as usize];
        *rest -= full - own;
        if *rest < full {
            large.pop();
            small.push(greater);
        }
    }
    columns
}

impl Sampler for Weighted {
    fn len(&self) -> u64 {
        self.columns.len() as u64
    }

    fn batch_size(&self) -> usize {
        self.batch
    }

    fn draw_slice(&self, step: u64, positions: Range<usize>, out: &mut Vec<u64>) {
        let (start, count) = clip(&positions, self.batch);
        let stream = Stream::new(self.seed, Domain::Weighted, step);
        for (slot, i) in prepare(out, count).iter_mut().zip(start as u64..) {
            let record = stream.below(self.len(), 2 * i);
            let column = self.columns[index(record)];
            let height = stream.below(self.total, 2 * i + 1);
            *slot = if height < column.mark { record } else { u64::from(column.other) };
        }
    }

    fn batch_len(&self, _step: u64) -> usize {
        self.batch
    }

    fn describe(&self) -> String {
        format!(
            "weighted(len={}, batch={}, seed={}, digest={:016x})",
            self.len(),
            self.batch,
            self.seed,
            self.digest
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_owns_exactly_its_share_of_the_table() {
        for weights in [
            vec![1.0],
            vec![0.0, 1.0],
            vec![1.0, 0.0, 3.0],
            vec![1e-300, 1e300, 1.0, 0.0],
            vec![f64::MAX, f64::MAX, f64::MIN_POSITIVE, 5e-324, 0.0],
            (0..1_000).map(|i| f64::from(i % 7) * 0.1).collect(),
        ] {
            let masses = masses(&weights).unwrap();
            let total: u64 = masses.iter().sum();
            let mut owned = vec![0_u128; masses.len()];
            for (record, column) in columns(&masses, total).into_iter().enumerate() {
                assert!(column.mark <= total);
                owned[record] += u128::from(column.mark);
                owned[column.other as usize] += u128::from(total - column.mark);
            }
            let shares: Vec<u128> =
                masses.iter().map(|mass| u128::from(*mass) * masses.len() as u128).collect();
            assert_eq!(owned, shares);
            assert!(weights.iter().zip(&masses).all(|(weight, mass)| (*weight > 0.0) == (*mass > 0)));
        }
    }
}
