#![expect(
    unsafe_code,
    reason = "typed uninitialised memory seen as bytes: one of the places where the design allows unsafe"
)]

use std::any::Any;
use std::mem::MaybeUninit;

use half::{bf16, f16};

use super::cast::bytes_of;
use crate::dtype::{DType, Element};
use crate::error::{Error, ErrorKind, Result};

macro_rules! typed_vec {
    ($($variant:ident($rust:ty)),+ $(,)?) => {
        /// A vector of a run-time element type; truth values are in the one of `u8`.
        #[derive(Clone, Debug)]
        pub(super) enum TypedVec {
            $($variant(Vec<$rust>)),+
        }

        impl TypedVec {
            /// An empty vector with a capacity of at least `elements`.
            pub(super) fn with_room(dtype: DType, elements: usize) -> Result<Self> {
                match dtype {
                    DType::Bool => Ok(Self::U8(reserve(elements)?)),
                    $(DType::$variant => Ok(Self::$variant(reserve(elements)?))),+
                }
            }

            /// The first `elements` places of its memory, as bytes of which nothing is known. It becomes empty.
            pub(super) fn uninit(&mut self, elements: usize) -> &mut [MaybeUninit<u8>] {
                match self {
                    $(Self::$variant(vec) => uninit(vec, elements)),+
                }
            }

            /// Sets the number of elements.
            ///
            /// # Safety
            ///
            /// The first `elements` places, within the capacity, have been written.
            pub(super) unsafe fn set_len(&mut self, elements: usize) {
                match self {
                    $(Self::$variant(vec) => {
                        // SAFETY: the caller's promise; any bit pattern is a value of an `Element`.
                        unsafe { vec.set_len(elements) }
                    }),+
                }
            }

            pub(super) fn as_bytes(&self) -> &[u8] {
                match self {
                    $(Self::$variant(vec) => bytes_of(vec)),+
                }
            }

            pub(super) fn as_bytes_mut(&mut self) -> &mut [u8] {
                match self {
                    $(Self::$variant(vec) => bytes_of_mut(vec)),+
                }
            }

            pub(super) fn into_vec<T: Element>(self) -> Option<Vec<T>> {
                match self {
                    $(Self::$variant(mut vec) => {
                        (&mut vec as &mut dyn Any).downcast_mut::<Vec<T>>().map(std::mem::take)
                    }),+
                }
            }

            pub(super) fn from_vec<T: Element>(mut vec: Vec<T>) -> Self {
                let any: &mut dyn Any = &mut vec;
                $(if let Some(vec) = any.downcast_mut::<Vec<$rust>>() {
                    return Self::$variant(std::mem::take(vec));
                })+
                // `Element` is sealed and each of its types is listed here.
                Self::U8(Vec::new())
            }

            /// A copy of elements given as their bytes; what is not a whole element at the end is left out.
            pub(super) fn from_bytes(dtype: DType, bytes: &[u8]) -> Self {
                match dtype {
                    DType::Bool => Self::U8(bytes.to_vec()),
                    $(DType::$variant => Self::$variant(copy_elements(bytes))),+
                }
            }
        }
    };
}

typed_vec! {
    U8(u8), U16(u16), U32(u32), U64(u64), I8(i8), I16(i16), I32(i32), I64(i64),
    F16(f16), BF16(bf16), F32(f32), F64(f64),
}

fn reserve<T: Element>(elements: usize) -> Result<Vec<T>> {
    let mut vec = Vec::<T>::new();
    vec.try_reserve_exact(elements).map_err(|error| {
        Error::new(
            ErrorKind::LimitExceeded,
            format!("no memory for a batch of {elements} elements of {}", T::DTYPE),
        )
        .with_hint("use a smaller batch")
        .caused_by(error)
    })?;
    Ok(vec)
}

fn uninit<T: Element>(vec: &mut Vec<T>, elements: usize) -> &mut [MaybeUninit<u8>] {
    vec.clear();
    let room = vec.spare_capacity_mut();
    let elements = elements.min(room.len());
    let bytes = elements * size_of::<T>();
    let start = room.as_mut_ptr().cast::<MaybeUninit<u8>>();
    // SAFETY: `room` is exclusively borrowed memory of at least `bytes` bytes; `MaybeUninit<u8>` has alignment 1
    // and asks nothing of the memory's content.
    unsafe { std::slice::from_raw_parts_mut(start, bytes) }
}

fn bytes_of_mut<T: Element>(elements: &mut [T]) -> &mut [u8] {
    let bytes = size_of_val(elements);
    // SAFETY: as in `bytes_of`, and whatever bytes are written, they are values of an `Element`.
    unsafe { std::slice::from_raw_parts_mut(elements.as_mut_ptr().cast::<u8>(), bytes) }
}

fn copy_elements<T: Element>(bytes: &[u8]) -> Vec<T> {
    let mut vec = vec![T::default(); bytes.len() / size_of::<T>()];
    let length = vec.len() * size_of::<T>();
    bytes_of_mut(&mut vec).copy_from_slice(&bytes[..length]);
    vec
}
