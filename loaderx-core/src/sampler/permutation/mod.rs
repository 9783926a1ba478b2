//! Stateless permutations: the record at a position, computed rather than looked up.
//!
//! A [`Layout`] holds what depends on the length alone; [`Layout::keyed`] adds the keys of one (seed, domain,
//! counter) and gives a [`Permutation`], which maps any run of positions without computing the ones before.
//! Three constructions share the work by length:
//!
//! | records | construction | why |
//! |---|---|---|
//! | up to 4,096 | shuffled [`table`] | a Feistel network over so few values is measurably not random |
//! | up to 2^28 | [`narrow`] network | halves fit 16-bit lanes, which compilers vectorise well |
//! | up to 2^40 | [`wide`] network | halves of 32 bits |

mod narrow;
mod table;
mod wide;

use super::random::{Domain, Stream};
use narrow::Narrow;
use std::sync::Arc;
use wide::Wide;

/// The largest length that is permuted by a table.
const TABLE_MAX: u64 = 4096;
/// The largest length whose halves fit the 16-bit lanes.
const NARROW_MAX: u64 = 1 << 28;
/// The largest length that a permutation supports.
pub(crate) const MAX_LEN: u64 = 1 << 40;

/// Eight rounds: the fewest that pass every test from 17 records up, see `docs/sampling.md`.
const ROUNDS: usize = 8;

/// What a permutation of `len` values needs besides its keys.
#[derive(Clone, Debug)]
pub(crate) enum Layout {
    Table(table::Cache),
    Narrow(narrow::Layout),
    Wide(wide::Layout),
}

impl Layout {
    /// For `len` values; `len` is at most [`MAX_LEN`].
    pub(crate) fn new(len: u64) -> Self {
        debug_assert!(len <= MAX_LEN, "the caller refuses lengths above the limit");
        if len <= TABLE_MAX {
            Self::Table(table::Cache::new(len))
        } else if len <= NARROW_MAX {
            Self::Narrow(narrow::Layout::new(len))
        } else {
            Self::Wide(wide::Layout::new(len))
        }
    }

    /// The permutation that belongs to (seed, domain, counter).
    pub(crate) fn keyed(&self, seed: u64, domain: Domain, counter: u64) -> Permutation {
        let stream = Stream::new(seed, domain, counter);
        match self {
            Self::Table(cache) => Permutation::Table(cache.get(stream)),
            Self::Narrow(layout) => Permutation::Narrow(layout.keyed(stream)),
            Self::Wide(layout) => Permutation::Wide(layout.keyed(stream)),
        }
    }
}

/// One permutation of the values below its length.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it lives on the stack of one draw, where boxing would cost an allocation"
)]
pub(crate) enum Permutation {
    Table(Arc<[u16]>),
    Narrow(Narrow),
    Wide(Wide),
}

impl Permutation {
    /// Writes the values at positions `start..start + out.len()`, all of them below the length.
    pub(crate) fn fill(&self, start: u64, out: &mut [u64]) {
        match self {
            Self::Table(table) => table::fill(table, start, out),
            Self::Narrow(network) => network.fill(start, out),
            Self::Wide(network) => network.fill(start, out),
        }
    }

    /// The value at one position; for runs of them [`Permutation::fill`] costs a tenth.
    pub(crate) fn at(&self, position: u64) -> u64 {
        match self {
            Self::Table(table) => u64::from(table[super::index(position)]),
            Self::Narrow(network) => network.at(position),
            Self::Wide(network) => network.at(position),
        }
    }

    /// Replaces each position by its value.
    pub(crate) fn map(&self, positions: &mut [u64]) {
        match self {
            Self::Table(table) => table::map(table, positions),
            Self::Narrow(network) => network.map(positions),
            Self::Wide(network) => network.map(positions),
        }
    }
}

/// The shortest side that a network may have: the narrow one computes as many neighbours at once.
const SHORTEST_SIDE: u64 = 64;

/// The sides of a near-square that holds `len` values and few more.
///
/// `a` is one of the sixteen numbers from `ceil(sqrt(len))` on, `b = ceil(len / a)`: the first pair of the smallest
/// product whose sides are not too short. The excess is what walks: below `a` for any choice, a sixteenth of that for
/// the best one in the mean.
fn sides(len: u64) -> (u64, u64) {
    let root = len.isqrt();
    let first = root + u64::from(root * root < len);
    let mut best = (first, len.div_ceil(first));
    for a in first + 1..first + 16 {
        let b = len.div_ceil(a);
        if b >= SHORTEST_SIDE && a * b < best.0 * best.1 {
            best = (a, b);
        }
    }
    best
}
