#![expect(
    unsafe_code,
    reason = "typed uninitialised memory seen as bytes: one of the places where the design allows unsafe"
)]

use std::any::Any;
use std::mem::MaybeUninit;

use half::{bf16, f16};

use crate::dtype::{DType, Element};
use crate::error::{Error, ErrorKind, Result};

macro_rules! typed_vec {
    ($($variant:ident($rust:ty)),+ $(,)?) => {
        /// A vector of a run-time element type.
        #[derive(Clone, Debug)]
        pub(super) enum TypedVec {
            $($variant(Vec<$rust>)),+
        }

        impl TypedVec {
            pub(super) fn fill(
                dtype: DType,
                elements: usize,
                write: impl for<'a> FnOnce(&'a mut [MaybeUninit<u8>]) -> Result<&'a mut [u8]>,
            ) -> Result<Self> {
                match dtype {
                    DType::Bool => Ok(Self::U8(fill_vec(elements, write)?)),
                    $(DType::$variant => Ok(Self::$variant(fill_vec(elements, write)?))),+
                }
            }

            pub(super) fn as_bytes(&self) -> &[u8] {
                match self {
                    $(Self::$variant(vec) => bytes_of(vec)),+
                }
            }

            pub(super) fn as_slice<T: Element>(&self) -> Option<&[T]> {
                match self {
                    $(Self::$variant(vec) => (vec as &dyn Any).downcast_ref::<Vec<T>>().map(Vec::as_slice)),+
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
        }
    };
}

typed_vec! {
    U8(u8), U16(u16), U32(u32), U64(u64), I8(i8), I16(i16), I32(i32), I64(i64),
    F16(f16), BF16(bf16), F32(f32), F64(f64),
}

fn fill_vec<T: Element>(
    elements: usize,
    write: impl for<'a> FnOnce(&'a mut [MaybeUninit<u8>]) -> Result<&'a mut [u8]>,
) -> Result<Vec<T>> {
    let mut vec = Vec::<T>::new();
    vec.try_reserve_exact(elements).map_err(|error| {
        Error::new(
            ErrorKind::LimitExceeded,
            format!("no memory for a batch of {elements} elements of {}", T::DTYPE),
        )
        .with_hint("use a smaller batch")
        .caused_by(error)
    })?;
    let room = &mut vec.spare_capacity_mut()[..elements];
    let bytes = size_of_val(room);
    let start = room.as_mut_ptr().cast::<MaybeUninit<u8>>();
    // SAFETY: `room` is exclusively borrowed memory of `bytes` bytes; `MaybeUninit<u8>` has alignment 1 and asks
    // nothing of the memory's content.
    let uninit = unsafe { std::slice::from_raw_parts_mut(start, bytes) };
    let written = write(uninit)?;
    if written.as_ptr() != start.cast::<u8>().cast_const() || written.len() != bytes {
        return Err(Error::invalid(format!(
            "a batch writer returned {} bytes that are not the {bytes} it was given",
            written.len()
        )));
    }
    // SAFETY: the capacity was reserved above; `written` is that very memory as `&mut [u8]`, so all of it is
    // initialised, and any bit pattern is a value of an `Element`.
    unsafe { vec.set_len(elements) };
    Ok(vec)
}

fn bytes_of<T: Element>(slice: &[T]) -> &[u8] {
    // SAFETY: an `Element` is a plain number without padding, so its memory is initialised bytes.
    unsafe { std::slice::from_raw_parts(slice.as_ptr().cast::<u8>(), size_of_val(slice)) }
}
