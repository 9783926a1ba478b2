#![expect(
    unsafe_code,
    reason = "elements seen as bytes and back: one of the places where the design allows unsafe"
)]

use crate::dtype::Element;

/// The memory of `elements`.
#[must_use]
pub fn bytes_of<T: Element>(elements: &[T]) -> &[u8] {
    // SAFETY: an `Element` is a plain number without padding, so its memory is initialised bytes; the length is
    // that of the slice in bytes.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast::<u8>(), size_of_val(elements)) }
}

/// `bytes` read as elements; `None` when they are not aligned for `T` or not a whole number of elements.
#[must_use]
pub fn elements_of<T: Element>(bytes: &[u8]) -> Option<&[T]> {
    let start = bytes.as_ptr().cast::<T>();
    if !start.is_aligned() || !bytes.len().is_multiple_of(size_of::<T>()) {
        return None;
    }
    // SAFETY: aligned and of a whole number of elements, as just checked; any bit pattern is a value of an
    // `Element`; the borrow of `bytes` lives on in the result.
    Some(unsafe { std::slice::from_raw_parts(start, bytes.len() / size_of::<T>()) })
}

/// `bytes` as elements to be written; `None` when they are not aligned for `T` or not a whole number of elements.
#[must_use]
pub fn elements_of_mut<T: Element>(bytes: &mut [u8]) -> Option<&mut [T]> {
    let start = bytes.as_mut_ptr().cast::<T>();
    if !start.is_aligned() || !bytes.len().is_multiple_of(size_of::<T>()) {
        return None;
    }
    // SAFETY: aligned and of a whole number of elements, as just checked; any bit pattern is a value of an
    // `Element` and any value of it is initialised bytes; the exclusive borrow of `bytes` lives on in the result.
    Some(unsafe { std::slice::from_raw_parts_mut(start, bytes.len() / size_of::<T>()) })
}
