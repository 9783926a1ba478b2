#![expect(unsafe_code, reason = "memory that is not a Vec: one of the places where the design allows unsafe")]

use std::mem::MaybeUninit;

/// Memory that a batch can be gathered into and that is not a `Vec`: of a pool, pinned for a device, shared.
///
/// Dropping it gives the memory back to whoever owns it.
///
/// # Safety
///
/// [`Memory::start`] and [`Memory::start_mut`] give the same pointer at every call, also after the value has been
/// moved; it points to [`Memory::capacity`] bytes in one allocation that stay readable and writable until the
/// value is dropped and that nobody else reads or writes meanwhile. The bytes need not be initialised, and the
/// implementation must not read them.
pub unsafe trait Memory: Send + Sync {
    /// The first byte, to be read through.
    fn start(&self) -> *const u8;

    /// The first byte, to be written through.
    fn start_mut(&mut self) -> *mut u8;

    /// Bytes.
    fn capacity(&self) -> usize;
}

/// The first `bytes` bytes, of which nothing is known.
pub(super) fn uninit(memory: &mut dyn Memory, bytes: usize) -> &mut [MaybeUninit<u8>] {
    let bytes = bytes.min(memory.capacity());
    let start = memory.start_mut().cast::<MaybeUninit<u8>>();
    // SAFETY: the implementor of `Memory` promised `capacity` bytes there that are ours while `memory` is borrowed;
    // `MaybeUninit<u8>` has alignment 1 and asks nothing of the content.
    unsafe { std::slice::from_raw_parts_mut(start, bytes) }
}

/// The first `bytes` bytes of a memory that a [`Buffer`](super::Buffer) holds.
///
/// Only a buffer's own length may be asked for: `Room::fill` saw exactly those bytes initialised.
pub(super) fn filled(memory: &dyn Memory, bytes: usize) -> &[u8] {
    // SAFETY: in bounds and ours by the promise of `Memory` (`Room::memory` compared `bytes` with the capacity);
    // initialised, since `Room::fill` makes a buffer only from a room of which all of `bytes` was written.
    unsafe { std::slice::from_raw_parts(memory.start(), bytes) }
}

/// As [`filled`], to be changed.
pub(super) fn filled_mut(memory: &mut dyn Memory, bytes: usize) -> &mut [u8] {
    // SAFETY: as in `filled`; `memory` is borrowed exclusively.
    unsafe { std::slice::from_raw_parts_mut(memory.start_mut(), bytes) }
}
