//! A small reproducible source of numbers and records for tests that are no property tests.

/// SplitMix64. The tests need numbers that differ and repeat, nothing more.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound
    }

    /// Whether a coin that falls on "yes" one time in `times` does.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// A record of `len` bytes: noise, which no codec shrinks, or words, which every codec does.
    pub fn record(&mut self, len: usize) -> Vec<u8> {
        if self.one_in(3) {
            return (0..len).map(|_| self.bits() as u8).collect();
        }
        const WORDS: [&[u8]; 8] =
            [b"the ", b"cat ", b"sat ", b"on ", b"a ", b"mat ", b"and ", b"purred loudly "];
        let mut record = Vec::with_capacity(len + 16);
        while record.len() < len {
            record.extend_from_slice(WORDS[self.below(8) as usize]);
        }
        record.truncate(len);
        record
    }

    /// `count` records of `min..=max` bytes.
    pub fn records(&mut self, count: usize, min: usize, max: usize) -> Vec<Vec<u8>> {
        (0..count)
            .map(|_| {
                let len = min + self.below((max - min + 1) as u64) as usize;
                self.record(len)
            })
            .collect()
    }
}
