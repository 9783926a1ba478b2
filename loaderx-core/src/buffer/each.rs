#![expect(
    unsafe_code,
    reason = "memory is declared initialised here: one of the places where the design allows unsafe"
)]

use std::mem::MaybeUninit;

use crate::error::{Error, Result};

/// Writes `make(x)`, `D` bytes, for each `x` of `source`; the loop has no exits, so the compiler vectorises it.
///
/// # Errors
///
/// When `room` is not `D` bytes for each element.
pub(crate) fn write_each<'r, S: Copy, const D: usize>(
    source: &[S],
    room: &'r mut [MaybeUninit<u8>],
    make: impl Fn(S) -> [u8; D],
) -> Result<&'r mut [u8]> {
    let places = places(room, source.len())?;
    for (place, &x) in places.iter_mut().zip(source) {
        *place = make(x).map(MaybeUninit::new);
    }
    // SAFETY: `places` are all of `room` and as many as `source` has elements, so the loop wrote every byte.
    Ok(unsafe { room.assume_init_mut() })
}

/// As [`write_each`] for `make(x, a, b)` with a factor and a summand of its own for each element.
///
/// # Errors
///
/// When `room` is not `D` bytes for each element, or there is not a factor and a summand for each.
pub(crate) fn write_each_with<'r, S: Copy, L: Copy, const D: usize>(
    source: &[S],
    factors: &[L],
    summands: &[L],
    room: &'r mut [MaybeUninit<u8>],
    make: impl Fn(S, L, L) -> [u8; D],
) -> Result<&'r mut [u8]> {
    let places = places(room, source.len())?;
    if factors.len() != source.len() || summands.len() != source.len() {
        return Err(Error::invalid(format!(
            "{} elements, {} factors and {} summands",
            source.len(),
            factors.len(),
            summands.len()
        )));
    }
    for (((place, &x), &a), &b) in places.iter_mut().zip(source).zip(factors).zip(summands) {
        *place = make(x, a, b).map(MaybeUninit::new);
    }
    // SAFETY: `places` are all of `room`; `source`, `factors` and `summands` have as many elements, so the loop wrote
    // every byte.
    Ok(unsafe { room.assume_init_mut() })
}

/// `room` as exactly `count` places of `D` bytes.
fn places<const D: usize>(room: &mut [MaybeUninit<u8>], count: usize) -> Result<&mut [[MaybeUninit<u8>; D]]> {
    let bytes = room.len();
    match room.as_chunks_mut::<D>() {
        (places, []) if places.len() == count => Ok(places),
        _ => Err(Error::invalid(format!("{count} elements of {D} bytes do not fill {bytes} bytes"))),
    }
}
