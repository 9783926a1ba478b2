use std::ops::Range;

use crate::error::{Error, Result};

/// Which side of a record's shape counts its channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Channels {
    /// The first: `[channels, height, width]`.
    First,
    /// The last: `[height, width, channels]`.
    Last,
    /// This one, counted from 0.
    Axis(usize),
}

/// The most elements that a table of factors is made for.
pub(super) const BLOCK: usize = 256;
/// From so many elements of one channel in a row on, they are worth a loop of their own.
const LONG_RUN: usize = 64;

/// `x * factor + summand` for each element, with one pair for all or one for each channel.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Affine {
    // One, or one for each channel; never empty.
    pairs: Vec<(f64, f64)>,
    // Elements of one channel in a row; meaningless with one pair.
    run: usize,
    tables: Tables,
}

/// The pairs spread out over a whole number of turns through the channels, in both precisions.
#[derive(Clone, Debug, Default, PartialEq)]
struct Tables {
    single: (Vec<f32>, Vec<f32>),
    double: (Vec<f64>, Vec<f64>),
}

impl Affine {
    pub(super) fn identity() -> Self {
        Self { pairs: vec![(1.0, 0.0)], run: 1, tables: Tables::default() }
    }

    pub(super) fn is_identity(&self) -> bool {
        self.pairs == [(1.0, 0.0)]
    }

    /// Followed by a multiplication.
    ///
    /// # Errors
    ///
    /// When `scale` is not finite.
    pub(super) fn scale(&self, scale: f64) -> Result<Self> {
        self.then(&[(scale, 0.0)], self.run)
    }

    /// Followed by `(x - mean) / std` for all elements.
    ///
    /// # Errors
    ///
    /// When `mean` is not finite or `std` not a positive number.
    pub(super) fn normalize(&self, mean: f64, std: f64) -> Result<Self> {
        self.then(&[normal(mean, std)?], self.run)
    }

    /// Followed by `(x - mean[c]) / std[c]` for the elements of channel `c`.
    ///
    /// # Errors
    ///
    /// As [`Affine::normalize`]; when there is not one number for each channel of the shape, or the channels were on
    /// another side before.
    pub(super) fn normalize_channels(
        &self,
        channels: Channels,
        item_shape: &[usize],
        mean: &[f64],
        std: &[f64],
    ) -> Result<Self> {
        let axis = match channels {
            Channels::First => 0,
            Channels::Last => item_shape.len().saturating_sub(1),
            Channels::Axis(axis) => axis,
        };
        let Some(&count) = item_shape.get(axis) else {
            return Err(Error::invalid(format!(
                "records of shape {item_shape:?} have no side {axis} of channels"
            )));
        };
        if mean.len() != count || std.len() != count || count == 0 {
            return Err(Error::invalid(format!(
                "{} means and {} standard deviations for the {count} channels of side {axis} of {item_shape:?}",
                mean.len(),
                std.len()
            )));
        }
        let run: usize = item_shape.iter().skip(axis + 1).product();
        let pairs =
            mean.iter().zip(std).map(|(&mean, &std)| normal(mean, std)).collect::<Result<Vec<_>>>()?;
        self.then(&pairs, run.max(1))
    }

    fn then(&self, next: &[(f64, f64)], run: usize) -> Result<Self> {
        if next.iter().any(|&(factor, summand)| !factor.is_finite() || !summand.is_finite()) {
            return Err(Error::invalid("elements cannot be scaled by or shifted to infinity or NaN"));
        }
        let both = self.pairs.len() > 1 && next.len() > 1;
        if both && (self.pairs.len(), self.run) != (next.len(), run) {
            return Err(Error::invalid("a record has channels on one side only"));
        }
        let count = self.pairs.len().max(next.len());
        let pair = |pairs: &[(f64, f64)], c: usize| {
            pairs.get(if pairs.len() == 1 { 0 } else { c }).copied().unwrap_or((1.0, 0.0))
        };
        let pairs: Vec<_> = (0..count)
            .map(|c| {
                let ((a, b), (factor, summand)) = (pair(&self.pairs, c), pair(next, c));
                (a * factor, b * factor + summand)
            })
            .collect();
        let run = if next.len() > 1 { run } else { self.run };
        let tables = Tables::new(&pairs, run);
        Ok(Self { pairs, run, tables })
    }

    /// Divides a record of `elements` into parts of at most `limit` elements and says with which pairs to go over
    /// each; calls `f(range, pairs)` in order.
    ///
    /// # Errors
    ///
    /// The first of `f`.
    pub(super) fn parts<'a, L: Lane>(
        &'a self,
        elements: usize,
        limit: usize,
        mut f: impl FnMut(Range<usize>, Pairs<'a, L>) -> Result<()>,
    ) -> Result<()> {
        let (factors, summands) = L::tables(self);
        let channels = self.pairs.len();
        let mut at = 0;
        while at < elements {
            let (length, pairs) = if channels == 1 || self.run >= LONG_RUN {
                let length = if channels == 1 { elements } else { self.run - at % self.run }.min(limit);
                let (factor, summand) =
                    self.pairs.get(at / self.run % channels).copied().unwrap_or((1.0, 0.0));
                (length.min(elements - at), Pairs::One(L::from_f64(factor), L::from_f64(summand)))
            } else {
                // Parts begin at a multiple of the table's length, or within it when it is longer than the limit.
                let start = at % factors.len().max(1);
                let length = (factors.len() - start).min(limit).min(elements - at);
                let part = |table: &'a [L]| table.get(start..start + length).unwrap_or(&[]);
                (length, Pairs::Each(part(factors), part(summands)))
            };
            f(at..at + length, pairs)?;
            at += length;
        }
        Ok(())
    }
}

impl std::fmt::Display for Affine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.pairs.as_slice() {
            _ if self.is_identity() => Ok(()),
            [(factor, summand)] => write!(f, " * {factor:?} + {summand:?}"),
            pairs => write!(f, " * and + {pairs:?} in runs of {}", self.run),
        }
    }
}

/// Factor and summand of `(x - mean) / std`.
fn normal(mean: f64, std: f64) -> Result<(f64, f64)> {
    if mean.is_finite() && std.is_finite() && std > 0.0 {
        return Ok((1.0 / std, -mean / std));
    }
    Err(Error::invalid(format!(
        "elements cannot be normalised by the mean {mean} and the standard deviation {std}"
    )))
}

impl Tables {
    fn new(pairs: &[(f64, f64)], run: usize) -> Self {
        if pairs.len() == 1 || run >= LONG_RUN {
            return Self::default();
        }
        let turn = pairs.len() * run;
        // Whole turns, sixteen at a time where they go into a block, so that no vector is cut.
        let turns = match BLOCK / (16 * turn) {
            0 => (BLOCK / turn).max(1),
            sixteens => 16 * sixteens,
        };
        let spread = || {
            let turn = pairs.iter().flat_map(move |&pair| std::iter::repeat_n(pair, run));
            std::iter::repeat_n((), turns).flat_map(move |()| turn.clone())
        };
        Self {
            single: spread().map(|(a, b)| (f32::from_f64(a), f32::from_f64(b))).unzip(),
            double: spread().unzip(),
        }
    }
}

/// The pairs for a part of a record.
#[derive(Clone, Copy)]
pub(super) enum Pairs<'a, L> {
    /// One for all of its elements.
    One(L, L),
    /// One for each: factors and summands.
    Each(&'a [L], &'a [L]),
}

/// The precision that elements are computed in.
pub(super) trait Lane: Copy + 'static {
    fn from_f64(value: f64) -> Self;
    fn tables(affine: &Affine) -> (&[Self], &[Self]);
}

impl Lane for f32 {
    #[expect(clippy::cast_possible_truncation, reason = "the nearest f32 is what is wanted")]
    fn from_f64(value: f64) -> Self {
        value as Self
    }

    fn tables(affine: &Affine) -> (&[Self], &[Self]) {
        (&affine.tables.single.0, &affine.tables.single.1)
    }
}

impl Lane for f64 {
    fn from_f64(value: f64) -> Self {
        value
    }

    fn tables(affine: &Affine) -> (&[Self], &[Self]) {
        (&affine.tables.double.0, &affine.tables.double.1)
    }
}
