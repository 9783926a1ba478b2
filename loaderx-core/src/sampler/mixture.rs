//! Several sources in fixed proportions.

use super::permutation::Layout;
use super::random::{Domain, Stream, low};
use super::{Sampler, check_batch, check_permutable, clip, index, prepare};
use crate::error::{Error, ErrorKind, Result};
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

/// Several sources, each with its share of every batch and its own endless cycles.
///
/// The sources' records lie one behind the other: source 0 has the indices from 0, source 1 those behind them. A
/// stretch of draws of any length, at any place, holds each source's share of it to within 4 records, usually 1; so
/// does a rank's slice of a batch. Within its share a source delivers its records as
/// [`Cyclic`](super::Cyclic) with [`Tail::Wrap`](super::Tail::Wrap) does: all of them once a cycle, each cycle in
/// a fresh order, a small source going round more often.
///
/// A seek costs a few operations a source. Shares are kept to 2^-32 of their neighbours'.
///
/// ```
/// use loaderx_core::sampler::{Mixture, Sampler};
///
/// // 1,000 records of web text, 10 of a handbook: every batch of 8 has 6 and 2.
/// let sampler = Mixture::new(&[(1_000, 0.75), (10, 0.25)], 8, 42)?;
/// let mut out = vec![];
/// sampler.draw(1_000_000, &mut out);
/// assert_eq!(out.iter().filter(|index| **index >= 1_000).count(), 2);
/// # Ok::<(), loaderx_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Mixture {
    sources: Arc<[Source]>,
    root: Child,
    /// Children before their parents.
    nodes: Arc<[Node]>,
    len: u64,
    batch: usize,
    seed: u64,
}

#[derive(Clone, Debug)]
struct Source {
    first: u64,
    len: u64,
    weight: f64,
    seed: u64,
    layout: Layout,
}

/// Deals its turns out to two children: of the first `t` turns the left one gets
/// `(t * share + phase) / 2^32`, rounded down, the right one the others.
#[derive(Clone, Copy, Debug)]
struct Node {
    share: u32,
    phase: u32,
    children: [Child; 2],
}

#[derive(Clone, Copy, Debug)]
enum Child {
    Node(usize),
    Source(usize),
}

impl Mixture {
    /// A sampler over `sources`, each given by its number of records and its weight, `batch` indices a step;
    /// `seed` decides the orders.
    ///
    /// A source of weight 0 is never drawn.
    ///
    /// # Errors
    ///
    /// When there is no source, a source has no record or more than 2^40, a weight is negative, infinite or not a
    /// number, none is positive, or `batch` is 0, exceeds the number of records, or is 2^32 or more.
    pub fn new(sources: &[(u64, f64)], batch: usize, seed: u64) -> Result<Self> {
        let mut first = 0_u64;
        let mut list = Vec::with_capacity(sources.len());
        for (number, &(len, weight)) in sources.iter().enumerate() {
            if !weight.is_finite() || weight < 0.0 {
                return Err(Error::invalid(format!("the weight of source {number} is {weight}"))
                    .with_hint("weights are finite numbers from 0 up"));
            }
            if len == 0 {
                return Err(Error::invalid(format!("source {number} of a mixture has 0 records")));
            }
            check_permutable(len)?;
            let seed = Stream::new(seed, Domain::Source, number as u64).word(0);
            list.push(Source { first, len, weight, seed, layout: Layout::new(len) });
            first = first.checked_add(len).ok_or_else(|| {
                Error::new(
                    ErrorKind::LimitExceeded,
                    format!("{} sources have 2^64 records or more", sources.len()),
                )
            })?;
        }
        check_batch(first, batch)?;
        if u32::try_from(batch).is_err() {
            return Err(Error::new(
                ErrorKind::LimitExceeded,
                format!("a batch of {batch} records is more than the limit of {}", u32::MAX),
            ));
        }
        let (root, nodes) = tree(&list, seed)?;
        Ok(Self { sources: list.into(), root, nodes: nodes.into(), len: first, batch, seed })
    }

    /// The indices of the records of each source, in the order of the sources.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.sources.iter().map(|source| source.first..source.first + source.len)
    }

    /// How far every node and every source is before turn `turn` of the root.
    fn seek(&self, turn: u128) -> (Vec<u64>, Vec<u128>) {
        let mut turns = vec![0_u128; self.nodes.len()];
        let mut fractions = vec![0_u64; self.nodes.len()];
        let mut drawn = vec![0_u128; self.sources.len()];
        match self.root {
            Child::Node(root) => turns[root] = turn,
            Child::Source(source) => drawn[source] = turn,
        }
        for (number, node) in self.nodes.iter().enumerate().rev() {
            // Turns are below 2^96 (a step times a batch of 32 bits), so the product fits.
            let exact = turns[number] * u128::from(node.share) + u128::from(node.phase);
            fractions[number] = low(exact) & u64::from(u32::MAX);
            let left = exact >> 32;
            for (child, turns_of_child) in node.children.into_iter().zip([left, turns[number] - left]) {
                match child {
                    Child::Node(child) => turns[child] = turns_of_child,
                    Child::Source(source) => drawn[source] = turns_of_child,
                }
            }
        }
        (fractions, drawn)
    }

    /// The source that the next turn belongs to.
    #[inline]
    fn turn(&self, fractions: &mut [u64]) -> usize {
        let mut child = self.root;
        loop {
            match child {
                Child::Source(source) => return source,
                Child::Node(number) => {
                    let node = &self.nodes[number];
                    let sum = fractions[number] + u64::from(node.share);
                    fractions[number] = sum & u64::from(u32::MAX);
                    let [left, right] = node.children;
                    child = if sum > u64::from(u32::MAX) { left } else { right };
                }
            }
        }
    }
}

impl Source {
    /// The records at positions `start..start + out.len()` of this source's endless order.
    fn fill(&self, start: u128, mut out: &mut [u64]) {
        let len = u128::from(self.len);
        // The number of the cycle wraps around at 2^64.
        let (mut cycle, mut position) = (low(start / len), low(start % len));
        while !out.is_empty() {
            let left = usize::try_from(self.len - position).unwrap_or(usize::MAX);
            let (part, behind) = out.split_at_mut(left.min(out.len()));
            self.layout.keyed(self.seed, Domain::Cycle, cycle).fill(position, part);
            part.iter_mut().for_each(|slot| *slot += self.first);
            out = behind;
            (cycle, position) = (cycle.wrapping_add(1), 0);
        }
    }
}

/// A tree that deals the turns out, built like Huffman's code: the two lightest parts are joined until one is
/// left.
///
/// Of any stretch of turns a node's children get their shares to within 1. A deviation of the stretch itself
/// reaches a child in proportion to the child's share, and joining the lightest keeps the share of an inner node
/// within its parent at 2/3 or below: deviations stay below `1 + 2/3 + 4/9 + ... = 3`, and 4 at a leaf.
fn tree(sources: &[Source], seed: u64) -> Result<(Child, Vec<Node>)> {
    let largest = sources.iter().fold(0.0_f64, |largest, source| largest.max(source.weight));
    // Relative to the largest, so that no sum leaves the range of f64.
    let mut parts: Vec<(f64, Child)> = sources
        .iter()
        .enumerate()
        .filter(|(_, source)| source.weight > 0.0)
        .map(|(number, source)| (source.weight / largest, Child::Source(number)))
        .collect();
    let phases = Stream::new(seed, Domain::Phase, 0);
    let mut nodes: Vec<Node> = Vec::new();
    // The heaviest first, equal ones in the order of the sources: the lightest two are the last two.
    parts.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    while let Some((right, right_child)) = parts.pop() {
        let Some((left, left_child)) = parts.pop() else { return Ok((right_child, nodes)) };
        let number = nodes.len();
        let phase = upper(phases.word(number as u64));
        nodes.push(Node { share: share(left / (left + right)), phase, children: [left_child, right_child] });
        let place = parts.partition_point(|(weight, _)| *weight > left + right);
        parts.insert(place, (left + right, Child::Node(number)));
    }
    Err(Error::invalid(format!("none of the weights of {} sources is positive", sources.len()))
        .with_hint("give at least one source a positive weight"))
}

/// A fraction in units of 2^-32. Neither side of a node is left without any turn.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 1..2^32")]
fn share(fraction: f64) -> u32 {
    (fraction * 2.0_f64.powi(32)).round().clamp(1.0, f64::from(u32::MAX)) as u32
}

/// The upper half of a word.
fn upper(word: u64) -> u32 {
    (word >> 32) as u32
}

impl Sampler for Mixture {
    fn len(&self) -> u64 {
        self.len
    }

    fn batch_size(&self) -> usize {
        self.batch
    }

    fn draw_slice(&self, step: u64, positions: Range<usize>, out: &mut Vec<u64>) {
        let (start, count) = clip(&positions, self.batch);
        let out = prepare(out, count);
        let turn = u128::from(step) * self.batch as u128 + start as u128;
        let (mut fractions, drawn) = self.seek(turn);

        // First whose turn it is, and how often that happens,
        let mut counts = vec![0_usize; self.sources.len()];
        for slot in &mut *out {
            let source = self.turn(&mut fractions);
            counts[source] += 1;
            *slot = source as u64;
        }
        // then each source's records in one run, laid side by side,
        let mut records = vec![0; count];
        let mut rest = &mut records[..];
        let mut next = counts;
        let mut first = 0;
        for ((source, next), drawn) in self.sources.iter().zip(&mut next).zip(drawn) {
            let (run, behind) = rest.split_at_mut(*next);
            source.fill(drawn, run);
            rest = behind;
            first += std::mem::replace(next, first);
        }
        // and taken from there in turn.
        for slot in out {
            let next = &mut next[index(*slot)];
            *slot = records[*next];
            *next += 1;
        }
    }

    fn batch_len(&self, _step: u64) -> usize {
        self.batch
    }

    fn describe(&self) -> String {
        let mut text = format!("mixture(batch={}, seed={}, sources=[", self.batch, self.seed);
        for (number, source) in self.sources.iter().enumerate() {
            let separator = if number == 0 { "" } else { ", " };
            // Writing to a string cannot fail.
            let _ = write!(text, "{separator}{}:{:?}", source.len, source.weight);
        }
        text.push_str("])");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_ends_one_short_of_a_whole_is_the_right_child_s() {
        let mixture = Mixture::new(&[(1_000, 0.7), (1_000, 0.3)], 1, 42).unwrap();
        let node = mixture.nodes[0];
        // Newton's iteration, which doubles the right bits of the inverse each time; any odd number has three.
        assert_eq!(node.share % 2, 1);
        let inverse = (0..4).fold(node.share, |inverse, _| {
            inverse.wrapping_mul(2_u32.wrapping_sub(node.share.wrapping_mul(inverse)))
        });
        // After so many turns the fraction is 2^32 - 1: chance meets it once in 2^32 turns.
        let turns = u64::from((u32::MAX - node.phase).wrapping_mul(inverse));
        let mut out = Vec::new();
        mixture.draw(turns - 1, &mut out);
        assert!(out[0] >= 1_000, "the lighter source's turn, not {out:?}");
        mixture.draw(turns, &mut out);
        assert!(out[0] < 1_000, "the heavier source's turn, not {out:?}");
    }
}
