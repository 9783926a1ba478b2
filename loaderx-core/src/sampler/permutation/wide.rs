//! The generalised Feistel network of [`narrow`](super::narrow) with halves of 32 bits in 64-bit lanes.

use super::{ROUNDS, sides};
use crate::sampler::random::Stream;

/// Positions computed at once.
const LANES: usize = 8;

type Lanes = [u64; LANES];

/// The lower half of a lane; masking with it tells the compiler that a 32-bit multiplication is enough.
const HALF: u64 = 0xffff_ffff;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    len: u64,
    a: u64,
    b: u64,
}

impl Layout {
    pub(super) fn new(len: u64) -> Self {
        let (a, b) = sides(len);
        Self { len, a, b }
    }

    pub(super) fn keyed(self, stream: Stream) -> Wide {
        let rounds = std::array::from_fn(|i| {
            let (first, second) = (stream.word(2 * i as u64), stream.word(2 * i as u64 + 1));
            Round {
                whiten: first & HALF,
                first: first >> 32 | 1,
                second: second & HALF | 1,
                side: if i % 2 == 0 { self.a } else { self.b },
            }
        });
        Wide { layout: self, rounds }
    }
}

/// A permutation: the layout and its round keys.
#[derive(Clone, Debug)]
pub(crate) struct Wide {
    layout: Layout,
    rounds: [Round; ROUNDS],
}

#[derive(Clone, Copy, Debug)]
struct Round {
    whiten: u64,
    first: u64,
    second: u64,
    side: u64,
}

impl Round {
    /// `half + f(other) mod side`, with `f` below the side.
    #[inline(always)]
    fn apply(self, half: u64, other: u64) -> u64 {
        let x = ((other ^ self.whiten) & HALF) * (self.first & HALF);
        let x = ((x ^ (x >> 32)) & HALF) * (self.second & HALF);
        let shift = (((x ^ (x >> 32)) & HALF) * (self.side & HALF)) >> 32;
        // Without a side to subtract the difference wraps around, and its upper half is all ones. Baseline vector
        // instructions cannot compare 64 bits.
        let difference = (half + shift).wrapping_sub(self.side);
        difference.wrapping_add(self.side & (difference >> 32))
    }
}

impl Wide {
    pub(super) fn fill(&self, start: u64, out: &mut [u64]) {
        let b = self.layout.b;
        let (mut left, mut right) = (start / b, start % b);
        for chunk in out.chunks_mut(LANES) {
            let (mut l, mut r) = ([0; LANES], [0; LANES]);
            for ((l, r), i) in l.iter_mut().zip(&mut r).zip(0_u64..) {
                (*l, *r) = carry(left, right + i, b);
            }
            self.block(l, r, chunk);
            (left, right) = carry(left, right + LANES as u64, b);
        }
    }

    pub(super) fn map(&self, positions: &mut [u64]) {
        for chunk in positions.chunks_mut(LANES) {
            let (mut l, mut r) = ([0; LANES], [0; LANES]);
            for ((l, r), position) in l.iter_mut().zip(&mut r).zip(&*chunk) {
                (*l, *r) = (position / self.layout.b, position % self.layout.b);
            }
            self.block(l, r, chunk);
        }
    }

    #[inline(always)]
    fn block(&self, mut l: Lanes, mut r: Lanes, out: &mut [u64]) {
        for pair in self.rounds.chunks_exact(2) {
            if let [even, odd] = *pair {
                for (l, r) in l.iter_mut().zip(&r) {
                    *l = even.apply(*l, *r);
                }
                for (r, l) in r.iter_mut().zip(&l) {
                    *r = odd.apply(*r, *l);
                }
            }
        }
        for ((slot, l), r) in out.iter_mut().zip(l).zip(r) {
            *slot = self.settle(l * self.layout.b + r);
        }
    }

    /// Sends a value past the length through the network again until it falls below.
    #[inline(always)]
    fn settle(&self, value: u64) -> u64 {
        if value < self.layout.len { value } else { self.at(value) }
    }

    /// The value at one position.
    #[cold]
    #[inline(never)]
    pub(super) fn at(&self, position: u64) -> u64 {
        let mut value = self.once(position);
        while value >= self.layout.len {
            value = self.once(value);
        }
        value
    }

    /// One way through the network.
    fn once(&self, value: u64) -> u64 {
        let (mut l, mut r) = (value / self.layout.b, value % self.layout.b);
        for pair in self.rounds.chunks_exact(2) {
            if let [even, odd] = *pair {
                l = even.apply(l, r);
                r = odd.apply(r, l);
            }
        }
        l * self.layout.b + r
    }
}

/// Moves one `b` from the right half to the left one if there is one.
#[inline(always)]
fn carry(left: u64, right: u64, b: u64) -> (u64, u64) {
    if right < b { (left, right) } else { (left + 1, right - b) }
}
