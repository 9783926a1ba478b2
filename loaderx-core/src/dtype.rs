//! Element types: their sizes, their names and how Rust types stand for them.

use half::{bf16, f16};

use crate::error::{Error, ErrorKind, Result};

/// The type of one element of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DType {
    /// A truth value in one byte, 0 or 1.
    Bool,
    /// Unsigned 8 bit.
    U8,
    /// Unsigned 16 bit.
    U16,
    /// Unsigned 32 bit.
    U32,
    /// Unsigned 64 bit.
    U64,
    /// Signed 8 bit.
    I8,
    /// Signed 16 bit.
    I16,
    /// Signed 32 bit.
    I32,
    /// Signed 64 bit.
    I64,
    /// IEEE half precision.
    F16,
    /// The upper half of an `f32`.
    BF16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
}

impl DType {
    /// Every element type, in the order of the enum.
    pub const ALL: [Self; 13] = [
        Self::Bool,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::F16,
        Self::BF16,
        Self::F32,
        Self::F64,
    ];

    /// Bytes of one element.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::BF16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// The Rust name: `"bool"`, `"u8"`, ..., `"bf16"`, `"f64"`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// The NumPy type string that `schema.msgpack` stores, little-endian.
    ///
    /// NumPy has no bfloat16 of its own; `ml_dtypes` registers one whose string is `<V2`, and Python writes
    /// such arrays as `|V2`.
    #[must_use]
    pub const fn numpy(self) -> &'static str {
        match self {
            Self::Bool => "|b1",
            Self::U8 => "|u1",
            Self::U16 => "<u2",
            Self::U32 => "<u4",
            Self::U64 => "<u8",
            Self::I8 => "|i1",
            Self::I16 => "<i2",
            Self::I32 => "<i4",
            Self::I64 => "<i8",
            Self::F16 => "<f2",
            Self::BF16 => "|V2",
            Self::F32 => "<f4",
            Self::F64 => "<f8",
        }
    }

    /// Reads a NumPy type string such as `<f4`, `|u1` or `uint8`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] for big-endian, complex, string and other types, by name.
    pub fn from_numpy(text: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|dtype| {
            let own = dtype.numpy();
            // One-byte types have no order; NumPy accepts any mark for them.
            text == own
                || (dtype.size() == 1
                    && text.get(1..) == own.get(1..)
                    && text.starts_with(['<', '>', '|', '=']))
        });
        if let Some(dtype) = known {
            return Ok(dtype);
        }
        if text == "<V2" {
            return Ok(Self::BF16);
        }
        let reason = if text.starts_with('>') {
            "it is big-endian and the format is used in place on little-endian machines"
        } else {
            "there is no element type for it"
        };
        Err(Error::new(ErrorKind::Unsupported, format!("element type {text:?} is not supported: {reason}"))
            .with_hint(
                "convert the data to one of bool, u8..u64, i8..i64, f16, bf16, f32, f64 (little-endian)",
            ))
    }

    /// Reads a Rust name such as `"f32"`. [`str::parse`] does the same.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] when no element type has this name.
    pub fn from_name(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == text).ok_or_else(|| {
            Error::new(ErrorKind::Unsupported, format!("there is no element type named {text:?}"))
                .with_hint("use one of bool, u8..u64, i8..i64, f16, bf16, f32, f64")
        })
    }
}

/// As [`DType::from_name`].
impl std::str::FromStr for DType {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::from_name(name)
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type whose memory is exactly one stored element: any bit pattern of its size is a value.
///
/// `bool` is none of them, as only two of its 256 bit patterns are values; truth values travel as `u8`.
pub trait Element:
    sealed::Sealed + Copy + Default + PartialEq + std::fmt::Debug + Send + Sync + 'static
{
    /// The element type that this Rust type stands for.
    const DTYPE: DType;

    /// The element whose little-endian bytes these are; zero when there are not exactly as many as it has.
    fn from_le(bytes: &[u8]) -> Self;
}

macro_rules! elements {
    ($($rust:ty => $dtype:ident),+ $(,)?) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const DTYPE: DType = DType::$dtype;

            fn from_le(bytes: &[u8]) -> Self {
                bytes.try_into().map(Self::from_le_bytes).unwrap_or_default()
            }
        }
    )+};
}

elements! {
    u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    i8 => I8, i16 => I16, i32 => I32, i64 => I64,
    f16 => F16, bf16 => BF16, f32 => F32, f64 => F64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_survives_its_names() {
        for dtype in DType::ALL {
            assert_eq!(DType::from_numpy(dtype.numpy()).unwrap(), dtype);
            assert_eq!(dtype.name().parse::<DType>().unwrap(), dtype);
        }
        assert_eq!(DType::from_numpy("<u1").unwrap(), DType::U8);
        assert_eq!(DType::from_numpy("<V2").unwrap(), DType::BF16);
    }

    #[test]
    fn foreign_types_are_refused_by_name() {
        for text in [">i4", "<c8", "|S5", "<U3", "|V3", "", "é"] {
            let error = DType::from_numpy(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
        }
    }
}
