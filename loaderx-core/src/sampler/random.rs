//! Counter-based random words: every word is computed from (seed, domain, counter, index) alone.
//!
//! There is no state to advance, so the word of any step and position costs the same as the first one. The
//! constants and the arithmetic are fixed for ever by the vectors in `docs/sampling.md`.

/// The odd number nearest to 2^64 divided by the golden ratio: multiples of it spread evenly over the words.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Separates the uses of one seed: streams of different domains have nothing in common.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Domain {
    Iid = 1,
    Cycle = 2,
    Split = 3,
    Weighted = 4,
    Source = 5,
    Phase = 6,
    Batches = 7,
    Members = 8,
    Template = 9,
}

/// Steele, Lea and Flood's 64-bit finaliser (`SplitMix64`): a bijection that mixes every bit into every bit.
pub(crate) const fn mix64(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The low and the high word of a 128-bit product.
pub(crate) const fn wide_mul(a: u64, b: u64) -> (u64, u64) {
    let product = a as u128 * b as u128;
    (low(product), low(product >> 64))
}

/// The low 64 bits.
#[expect(clippy::cast_possible_truncation, reason = "taking the low word is what this function is for")]
pub(crate) const fn low(x: u128) -> u64 {
    x as u64
}

/// The words of one (seed, domain, counter), each addressed by its index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    offset: u64,
    twist: u64,
}

impl Stream {
    pub(crate) const fn new(seed: u64, domain: Domain, counter: u64) -> Self {
        let base = mix64(seed ^ (domain as u64).wrapping_mul(0xd6e8_feb8_6659_fd93));
        let offset = mix64(base ^ counter);
        let twist = mix64(base.rotate_left(32).wrapping_add(counter.wrapping_mul(GOLDEN)));
        Self { offset, twist }
    }

    /// What tells this stream from any other.
    pub(crate) const fn key(self) -> (u64, u64) {
        (self.offset, self.twist)
    }

    /// The `index`-th word: the two halves of a 128-bit product folded onto each other, as in Wang Yi's wyrand.
    #[inline(always)]
    pub(crate) const fn word(self, index: u64) -> u64 {
        let x = self.offset.wrapping_add(index.wrapping_mul(GOLDEN));
        let (low, high) = wide_mul(x, x ^ self.twist);
        low ^ high
    }

    /// A number below `n`, each with the same probability (Lemire's multiplication with rejection).
    #[inline]
    pub(crate) const fn below(self, n: u64, index: u64) -> u64 {
        let (fraction, value) = wide_mul(self.word(index), n);
        // Fewer than `n` of the 2^64 words have such a fraction, and only 2^64 mod n of them are in excess.
        if fraction < n { self.settle(n, index, fraction, value) } else { value }
    }

    /// Rejects the words in excess and draws again; almost never reached.
    #[cold]
    #[inline(never)]
    const fn settle(self, n: u64, index: u64, mut fraction: u64, mut value: u64) -> u64 {
        let excess = n.wrapping_neg() % n;
        let mut attempt = 0_u64;
        while fraction < excess {
            attempt += 1;
            let again = Self { offset: mix64(self.offset ^ attempt), twist: self.twist };
            (fraction, value) = wide_mul(again.word(index), n);
        }
        value
    }

    /// [`Stream::below`] for the indices `first..first + out.len()`.
    pub(crate) fn fill_below(self, n: u64, first: u64, out: &mut [u64]) {
        // The common case has no branch on the data: a block is drawn whole, and again one by one if any of its
        // words might have been in excess.
        const BLOCK: usize = 16;
        let mut index = first;
        let mut blocks = out.chunks_exact_mut(BLOCK);
        for block in &mut blocks {
            let mut suspect = false;
            for (slot, i) in block.iter_mut().zip(0_u64..) {
                let (fraction, value) = wide_mul(self.word(index.wrapping_add(i)), n);
                *slot = value;
                suspect |= fraction < n;
            }
            if suspect {
                self.fill_each(n, index, block);
            }
            index = index.wrapping_add(BLOCK as u64);
        }
        self.fill_each(n, index, blocks.into_remainder());
    }

    fn fill_each(self, n: u64, first: u64, out: &mut [u64]) {
        for (slot, i) in out.iter_mut().zip(0_u64..) {
            *slot = self.below(n, first.wrapping_add(i));
        }
    }
}

/// A 64-bit digest of a sequence of words, for texts that have to tell long lists apart; not cryptographic.
#[derive(Debug)]
pub(crate) struct Digest(u64);

impl Digest {
    pub(crate) const fn new() -> Self {
        Self(GOLDEN)
    }

    pub(crate) const fn add(&mut self, word: u64) {
        self.0 = mix64(self.0.rotate_left(23) ^ word).wrapping_add(GOLDEN);
    }

    pub(crate) const fn finish(self) -> u64 {
        mix64(self.0)
    }
}
