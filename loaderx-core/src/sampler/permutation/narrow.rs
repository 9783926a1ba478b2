//! A generalised Feistel network over `a * b` values in 16-bit lanes.
//!
//! A position `p` is the pair `(p / b, p mod b)`. A round adds a keyed function of one half to the other, modulo
//! that half's side, which is invertible whatever the function; `a * b` hardly exceeds the length, so
//! a value at or past the length, which is sent through the network again until it falls below ("cycle
//! walking"), is rare for every length.

use super::{ROUNDS, sides};
use crate::sampler::random::Stream;

/// Positions computed at once. A round is a chain of dependent instructions, so it takes eight vectors of 8 lanes
/// side by side to keep a core busy; more would no longer fit below the shortest side.
const LANES: usize = 64;
const STRIDE: u16 = 64;

type Lanes = [u16; LANES];

#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    len: u32,
    a: u16,
    b: u16,
}

impl Layout {
    pub(crate) fn new(len: u64) -> Self {
        let (a, b) = sides(len);
        Self { len: narrow32(len), a: narrow16(a), b: narrow16(b) }
    }

    pub(crate) fn keyed(self, stream: Stream) -> Narrow {
        let rounds = std::array::from_fn(|i| {
            let word = stream.word(i as u64);
            Round {
                whiten: narrow16(word & 0xffff),
                first: narrow16(word >> 16 & 0xffff) | 1,
                second: narrow16(word >> 32 & 0xffff) | 1,
                // Kept with each round's keys, not hoisted out of the rounds' loop: with a loop-invariant operand
                // compilers widen the 16-bit multiply-high to 32 bits.
                side: if i % 2 == 0 { self.a } else { self.b },
            }
        });
        Narrow { layout: self, rounds }
    }
}

/// A permutation: the layout and its round keys.
#[derive(Clone, Debug)]
pub(crate) struct Narrow {
    layout: Layout,
    rounds: [Round; ROUNDS],
}

#[derive(Clone, Copy, Debug)]
struct Round {
    whiten: u16,
    first: u16,
    second: u16,
    side: u16,
}

impl Round {
    /// `half + f(other) mod side`, with `f` below the side.
    #[inline(always)]
    fn apply(self, half: u16, other: u16) -> u16 {
        let x = (other ^ self.whiten).wrapping_mul(self.first);
        let x = (x ^ (x >> 8)).wrapping_mul(self.second);
        let shift = high16(x, self.side);
        // Below twice the side, which is below 2^15: without a side to subtract the difference wraps around to a
        // large number, so the smaller of the two is the remainder.
        let sum = half.wrapping_add(shift);
        sum.min(sum.wrapping_sub(self.side))
    }
}

impl Narrow {
    pub(crate) fn fill(&self, start: u64, out: &mut [u64]) {
        let b = u64::from(self.layout.b);
        let (mut left, mut right) = (narrow16(start / b), narrow16(start % b));
        let mut chunks = out.chunks_exact_mut(LANES);
        for chunk in &mut chunks {
            let (l, r) = self.spread(left, right);
            if let Ok(chunk) = chunk.try_into() {
                self.block(l, r, chunk);
            }
            (left, right) = carry(left, right + STRIDE, self.layout.b);
        }
        let rest = chunks.into_remainder();
        if !rest.is_empty() {
            let (mut l, mut r) = self.spread(left, right);
            // The lanes to spare repeat the first position: the next ones may lie outside the network's values,
            // from where no walk leads back.
            l[rest.len()..].fill(left);
            r[rest.len()..].fill(right);
            let mut block = [0; LANES];
            self.block(l, r, &mut block);
            for (slot, value) in rest.iter_mut().zip(block) {
                *slot = value;
            }
        }
    }

    pub(crate) fn map(&self, positions: &mut [u64]) {
        for chunk in positions.chunks_mut(LANES) {
            let (mut l, mut r) = ([0; LANES], [0; LANES]);
            let b = u32::from(self.layout.b);
            for ((l, r), position) in l.iter_mut().zip(&mut r).zip(&*chunk) {
                let position = narrow32(*position);
                (*l, *r) = (narrow16(u64::from(position / b)), narrow16(u64::from(position % b)));
            }
            let mut block = [0; LANES];
            self.block(l, r, &mut block);
            for (slot, value) in chunk.iter_mut().zip(block) {
                *slot = value;
            }
        }
    }

    /// The halves of `LANES` consecutive positions. No side is shorter than the lanes' number, so one carry is enough.
    #[inline(always)]
    fn spread(&self, left: u16, right: u16) -> (Lanes, Lanes) {
        let (mut l, mut r) = ([left; LANES], [0; LANES]);
        for ((l, r), i) in l.iter_mut().zip(&mut r).zip(0_u16..) {
            (*l, *r) = carry(left, right.wrapping_add(i), self.layout.b);
        }
        (l, r)
    }

    #[inline(always)]
    fn block(&self, mut l: Lanes, mut r: Lanes, out: &mut [u64; LANES]) {
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
        let mut outside = false;
        for ((slot, l), r) in out.iter_mut().zip(l).zip(r) {
            let value = self.join(l, r);
            *slot = u64::from(value);
            outside |= value >= self.layout.len;
        }
        if outside {
            self.walk(out);
        }
    }

    #[inline(always)]
    fn join(&self, l: u16, r: u16) -> u32 {
        u32::from(l) * u32::from(self.layout.b) + u32::from(r)
    }

    /// The value at one position.
    pub(super) fn at(&self, position: u64) -> u64 {
        let mut value = self.once(narrow32(position));
        while value >= self.layout.len {
            value = self.once(value);
        }
        u64::from(value)
    }

    /// One way through the network.
    fn once(&self, value: u32) -> u32 {
        let b = u32::from(self.layout.b);
        let (mut l, mut r) = (narrow16(u64::from(value / b)), narrow16(u64::from(value % b)));
        for pair in self.rounds.chunks_exact(2) {
            if let [even, odd] = *pair {
                l = even.apply(l, r);
                r = odd.apply(r, l);
            }
        }
        self.join(l, r)
    }

    #[cold]
    #[inline(never)]
    fn walk(&self, out: &mut [u64; LANES]) {
        for slot in out {
            if *slot >= u64::from(self.layout.len) {
                *slot = self.at(*slot);
            }
        }
    }
}

/// Moves one `b` from the right half to the left one if there is one. Both stay below 2^15.
#[inline(always)]
fn carry(left: u16, right: u16, b: u16) -> (u16, u16) {
    (left + u16::from(right >= b), right.min(right.wrapping_sub(b)))
}

#[inline(always)]
fn high16(x: u16, y: u16) -> u16 {
    ((u32::from(x) * u32::from(y)) >> 16) as u16
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "halves, sides and masked words have at most 16 bits")]
fn narrow16(x: u64) -> u16 {
    x as u16
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "lengths and positions here are at most 2^28")]
fn narrow32(x: u64) -> u32 {
    x as u32
}
