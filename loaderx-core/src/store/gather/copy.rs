//! Copying one record into its row.
//!
//! The C library's `memcpy` is the fastest there is for small and for huge records. Between, on some processors, it
//! uses an instruction (`rep movsb`) that becomes 5 to 20 times slower when source and destination lie within a few
//! bytes of each other modulo 4096, and a large allocation that starts 16 bytes into a page meets records whose
//! size is a multiple of 4096 exactly so, every time. So records of that middle size are copied by a loop of
//! 32-byte vector moves, which has no such band.
#![cfg_attr(
    any(test, target_arch = "x86_64"),
    expect(unsafe_code, reason = "vector instructions and prefetching take raw pointers")
)]

use std::mem::MaybeUninit;

/// Records of these sizes are copied by the loop.
#[cfg(target_arch = "x86_64")]
const LOOP_SIZES: std::ops::Range<usize> = 2048..512 * 1024;

/// Copies `src` into `dst`, which is as long, and returns it as bytes.
///
/// # Panics
///
/// When the lengths differ.
#[inline]
pub(super) fn copy<'a>(src: &[u8], dst: &'a mut [MaybeUninit<u8>]) -> &'a mut [u8] {
    assert_eq!(src.len(), dst.len(), "a record and its row differ in length");
    #[cfg(target_arch = "x86_64")]
    if LOOP_SIZES.contains(&src.len()) && std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: AVX2 was just detected; the lengths are equal and at least 2048.
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

    #[test]
    fn every_size_and_alignment_copies_like_the_byte_loop() {
        let source: Vec<u8> =
            (0..1_200_000_u32).map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
        let sizes =
            (0..300).chain(2020..2200).chain([4096, 12288, 12289, 65535, 524_287, 524_288, 524_289, 1 << 20]);
        for size in sizes {
            for (from, to) in [(0, 0), (1, 0), (0, 1), (3, 17), (31, 32), (63, 5)] {
                let src = &source[from..from + size];
                let mut expected = vec![0xaa; to + size + 40];
                naive(src, &mut expected[to..to + size]);
                let mut actual = vec![MaybeUninit::new(0xaa_u8); to + size + 40];
                let copied = copy(src, &mut actual[to..to + size]);
                assert_eq!(copied, src, "size {size}, from {from}, to {to}");
                // Nothing beside the row was touched.
                let actual = zeroed_copy(&mut actual);
                assert_eq!(actual, expected, "size {size}, from {from}, to {to}");
            }
        }
    }

    /// The bytes, all of which the test has initialised.
    fn zeroed_copy(bytes: &mut [MaybeUninit<u8>]) -> Vec<u8> {
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
