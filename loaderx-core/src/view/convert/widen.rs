use crate::buffer::{Filler, write_each};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};

macro_rules! widenings {
    ($($from:ident($source:ty) => $($to:ident($target:ty)),+;)+) => {
        /// Whether every value of the integer type `from` is one of the integer type `to`.
        pub(super) fn is_lossless(from: DType, to: DType) -> bool {
            matches!((from, to), $($((DType::$from, DType::$to))|+)|+)
        }

        /// Writes integers as a wider type.
        ///
        /// # Errors
        ///
        /// [`ErrorKind::Unsupported`] for another pair than [`is_lossless`] has.
        pub(super) fn write(from: DType, to: DType, stored: &[u8], filler: &mut Filler<'_>) -> Result<()> {
            match (from, to) {
                $($((DType::$from, DType::$to) => {
                    let (source, _) = stored.as_chunks::<{ size_of::<$source>() }>();
                    filler.with(source.len() * size_of::<$target>(), |room| {
                        write_each(source, room, |bytes| {
                            <$target>::from(<$source>::from_le_bytes(bytes)).to_le_bytes()
                        })
                    })
                })+)+
                _ => Err(Error::new(ErrorKind::Unsupported, format!("{from} is not widened to {to}"))),
            }
        }
    };
}

// Truth values are bytes of 0 and 1.
widenings! {
    Bool(u8) => U8(u8), U16(u16), U32(u32), U64(u64), I16(i16), I32(i32), I64(i64);
    U8(u8) => U16(u16), U32(u32), U64(u64), I16(i16), I32(i32), I64(i64);
    U16(u16) => U32(u32), U64(u64), I32(i32), I64(i64);
    U32(u32) => U64(u64), I64(i64);
    I8(i8) => I16(i16), I32(i32), I64(i64);
    I16(i16) => I32(i32), I64(i64);
    I32(i32) => I64(i64);
}
