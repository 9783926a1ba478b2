//! Copying one record into its row.
//!
//! The C library's `memcpy` is the fastest there is for small and for huge records. Between, on AMD's processors, it
//! uses an instruction (`rep movsb`) that becomes 5 to 20 times slower when source and destination lie within a few
//! bytes of each other modulo 4096, and a large allocation that starts 16 bytes into a page meets records whose
//! size is a multiple of 4096 exactly so, every time. So there records of that middle size are copied by a loop of
//! 32-byte vector moves, which has no such band. Intel's processors have none either, and `memcpy` is 3 to 10 per cent
//! faster on them than the loop.
#![cfg_attr(
    any(test, target_arch = "x86_64"),
    expect(unsafe_code, reason = "vector instructions and prefetching take raw pointers")
)]

use std::mem::MaybeUninit;

/// Records of these sizes are copied by the loop, where the processor needs it.
#[cfg(target_arch = "x86_64")]
const LOOP_SIZES: std::ops::Range<usize> = 2048..512 * 1024;

/// Whether this processor has AVX2 for the loop and the slow band that makes it worthwhile.
#[cfg(target_arch = "x86_64")]
static NEEDS_LOOP: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| {
    if cfg!(miri) {
        return false; // Miri has no processor to ask
    }
    let vendor = std::arch::x86_64::__cpuid(0);
    let amd = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).concat() == b"AuthenticAMD";
    amd && std::arch::is_x86_feature_detected!("avx2")
});

/// Copies `src` into `dst`, which is as long, and returns it as bytes.
///
/// # Panics
///
/// When the lengths differ.
#[inline]
pub(super) fn copy<'a>(src: &[u8], dst: &'a mut [MaybeUninit<u8>]) -> &'a mut [u8] {
    assert_eq!(src.len(), dst.len(), "a record and its row differ in length");
    #[cfg(target_arch = "x86_64")]
    if LOOP_SIZES.contains(&src.len()) && *NEEDS_LOOP {
        // SAFETY: `NEEDS_LOOP` has found AVX2; the lengths are equal and at least 2048.
        unsafe { copy_avx2(src.as_ptr(), dst.as_mut_ptr().cast(), src.len()) };
        // SAFETY: the call has written all dst.len() bytes.
        return unsafe { dst.assume_init_mut() };
    }
    dst.write_copy_of_slice(src)
}

/// Copies `len` bytes, at least 32, between places that do not overlap.
///
/// # Safety
///
/// The processor has AVX2, `len >= 32`, `src` is readable and `dst` writable for `len` bytes.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn copy_avx2(src: *const u8, dst: *mut u8, len: usize) {
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_storeu_si256};

    let step = |at: usize| {
        // SAFETY: every caller below has at + 32 <= len, and `src` is readable for `len` bytes.
        let from = unsafe { src.add(at) }.cast::<__m256i>();
        // SAFETY: as above, for `dst`.
        let to = unsafe { dst.add(at) }.cast::<__m256i>();
        // SAFETY: 32 bytes at `from` are readable; the load has no alignment to keep.
        let vector = unsafe { _mm256_loadu_si256(from) };
        // SAFETY: 32 bytes at `to` are writable; the store has no alignment to keep.
        unsafe { _mm256_storeu_si256(to, vector) };
    };
    let mut at = 0;
    while at + 128 <= len {
        step(at);
        step(at + 32);
        step(at + 64);
        step(at + 96);
        at += 128;
    }
    while at + 32 <= len {
        step(at);
        at += 32;
    }
    if at < len {
        // The last vector overlaps the one before, which rewrites equal bytes.
        step(len - 32);
    }
}

/// Starts loading the first lines of `bytes` into the cache.
#[inline]
pub(super) fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

        // More lines than this at once overrun the processor's miss buffers.
        for line in bytes.chunks(64).take(8) {
            // SAFETY: a prefetch never faults, and the address is within `bytes`.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The oracle: byte by byte.
    fn naive(src: &[u8], dst: &mut [u8]) {
        for (to, from) in dst.iter_mut().zip(src) {
            *to = *from;
        }
    }

    /// Copies at every size around the limits of the loop, at some alignments, and compares with the oracle.
    fn check(sizes: impl Iterator<Item = usize>, copy: impl Fn(&[u8], &mut [MaybeUninit<u8>])) {
        let source: Vec<u8> =
            (0..1_200_000_u32).map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
        for size in sizes {
            for (from, to) in [(0, 0), (1, 0), (0, 1), (3, 17), (31, 32), (63, 5)] {
                let src = &source[from..from + size];
                let mut expected = vec![0xaa; to + size + 40];
                naive(src, &mut expected[to..to + size]);
                let mut actual = vec![MaybeUninit::new(0xaa_u8); to + size + 40];
                copy(src, &mut actual[to..to + size]);
                // Nothing beside the row was touched.
                assert_eq!(initialised(&actual), expected, "size {size}, from {from}, to {to}");
            }
        }
    }

    #[test]
    fn every_size_and_alignment_copies_like_the_byte_loop() {
        let large = [4096, 12288, 12289, 65535, 524_287, 524_288, 524_289, 1 << 20];
        check((0..300).chain(2020..2200).chain(large), |src, dst| assert_eq!(copy(src, dst), src));
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_loop_copies_like_the_byte_loop_on_any_processor_that_has_it() {
        if !std::arch::is_x86_feature_detected!("avx2") {
            return;
        }
        check((32..300).chain(2020..2200).chain([4096, 12289, 65535]), |src, dst| {
            // SAFETY: AVX2 was just detected, the sizes begin at 32, and `check` gives equal lengths.
            unsafe { copy_avx2(src.as_ptr(), dst.as_mut_ptr().cast(), src.len()) }
        });
    }

    /// The bytes, all of which the test has initialised.
    fn initialised(bytes: &[MaybeUninit<u8>]) -> Vec<u8> {
        // SAFETY: the caller made every byte with `MaybeUninit::new`.
        unsafe { bytes.assume_init_ref() }.to_vec()
    }

    #[test]
    #[should_panic(expected = "differ in length")]
    fn a_row_of_another_length_is_refused() {
        copy(&[0; 4096], &mut [MaybeUninit::uninit(); 4095]);
    }

    #[test]
    fn prefetching_takes_any_slice() {
        for size in [0, 1, 64, 65, 10_000] {
            prefetch(&vec![0; size]);
        }
    }
}
