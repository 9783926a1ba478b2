use std::mem::MaybeUninit;

/// A small generator for test data; its numbers need to be irregular, not good.
#[derive(Clone, Debug)]
pub struct Lcg(pub u64);

impl Lcg {
    /// The next 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    /// `len` irregular bytes that compress about two to one.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| (self.next_u32() >> 28) as u8).collect()
    }
}

/// `count` indices below `len`, in random order with repeats.
#[must_use]
pub fn random_indices(seed: u64, count: usize, len: u64) -> Vec<u64> {
    let mut random = Lcg(seed);
    (0..count)
        .map(|_| (u64::from(random.next_u32()) << 16 | u64::from(random.next_u32()) & 0xffff) % len)
        .collect()
}

/// Room for `len` bytes that a gather can write.
#[must_use]
pub fn uninit_bytes(len: usize) -> Vec<MaybeUninit<u8>> {
    vec![MaybeUninit::new(0); len]
}

/// A number that changes when any byte does, to check what a benchmark computed.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
