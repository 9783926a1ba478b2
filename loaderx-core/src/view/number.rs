use half::{bf16, f16};

use crate::dtype::DType;
use crate::error::{Error, Result};

/// A value for padding, whatever the element type: `0`, `-100`, `1.0`.
///
/// Made from any integer or float; whether it is a value of the records' type is checked where it is used, so that
/// `.value(-100)` suits `i32` and `i64` records alike and is refused for `u16` ones.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Number {
    /// An integer; every element type's integers are in its range.
    Int(i128),
    /// A float.
    Float(f64),
}

macro_rules! from_numbers {
    ($($int:ty),+ => $variant:ident($into:ty)) => {$(
        impl From<$int> for Number {
            fn from(value: $int) -> Self {
                Self::$variant(<$into>::from(value))
            }
        }
    )+};
}

from_numbers!(bool, u8, u16, u32, u64, i8, i16, i32, i64 => Int(i128));
from_numbers!(f16, bf16, f32, f64 => Float(f64));

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
        }
    }
}

impl Number {
    /// The bytes of an element of `dtype` with this value; floats are rounded to the nearest.
    ///
    /// # Errors
    ///
    /// When no element of `dtype` has this value, or a float type cannot hold one of its size.
    pub(super) fn encode(self, dtype: DType) -> Result<Vec<u8>> {
        macro_rules! int {
            ($int:ty) => {
                self.integer()
                    .and_then(|value| <$int>::try_from(value).ok())
                    .map(|value| value.to_le_bytes().to_vec())
            };
        }
        let bytes = match dtype {
            DType::Bool => {
                self.integer().filter(|value| (0..=1).contains(value)).map(|value| vec![u8::from(value == 1)])
            }
            DType::U8 => int!(u8),
            DType::U16 => int!(u16),
            DType::U32 => int!(u32),
            DType::U64 => int!(u64),
            DType::I8 => int!(i8),
            DType::I16 => int!(i16),
            DType::I32 => int!(i32),
            DType::I64 => int!(i64),
            DType::F16 => self.float(f16::from_f64(self.to_f64()), f64::from),
            DType::BF16 => self.float(bf16::from_f64(self.to_f64()), f64::from),
            DType::F32 => self.float(narrow(self.to_f64()), f64::from),
            DType::F64 => self.float(self.to_f64(), |value| value),
        };
        bytes.ok_or_else(|| Error::invalid(format!("the padding value {self} is not a value of {dtype}")))
    }

    /// `None` for a fraction, and what is beyond any integer type.
    fn integer(self) -> Option<i128> {
        match self {
            Self::Int(value) => Some(value),
            #[expect(
                clippy::cast_possible_truncation,
                reason = "within the range that was just compared with"
            )]
            Self::Float(value) if value.fract() == 0.0 && value.abs() < 1e30 => Some(value as i128),
            Self::Float(_) => None,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "the nearest float is what is wanted")]
    fn to_f64(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
        }
    }

    /// The bytes of `rounded`, unless a finite number became infinite.
    fn float<T: crate::dtype::Element>(self, rounded: T, widen: impl Fn(T) -> f64) -> Option<Vec<u8>> {
        let overflow = self.to_f64().is_finite() && !widen(rounded).is_finite();
        (!overflow).then(|| crate::buffer::bytes_of(&[rounded]).to_vec())
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the nearest f32 is what is wanted")]
fn narrow(value: f64) -> f32 {
    value as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_encoded_where_the_type_has_it() {
        assert_eq!(Number::from(-100).encode(DType::I64).unwrap(), (-100_i64).to_le_bytes());
        assert_eq!(Number::from(7.0).encode(DType::U16).unwrap(), 7_u16.to_le_bytes());
        assert_eq!(Number::from(u64::MAX).encode(DType::U64).unwrap(), [255; 8]);
        assert_eq!(Number::from(0.1).encode(DType::F32).unwrap(), 0.1_f32.to_le_bytes());
        assert_eq!(
            Number::from(f64::NEG_INFINITY).encode(DType::F16).unwrap(),
            f16::NEG_INFINITY.to_le_bytes()
        );
        assert_eq!(Number::from(true).encode(DType::Bool).unwrap(), [1]);
        assert_eq!(Number::from(3).encode(DType::BF16).unwrap(), bf16::from_f32(3.0).to_le_bytes());
    }

    #[test]
    fn a_number_that_the_type_lacks_is_refused() {
        for (number, dtype) in [
            (Number::from(-1), DType::U16),
            (Number::from(2), DType::Bool),
            (Number::from(0.5), DType::I32),
            (Number::from(70_000), DType::F16),
            (Number::from(1e300), DType::F32),
            (Number::from(f64::NAN), DType::I8),
        ] {
            let error = number.encode(dtype).unwrap_err();
            assert!(error.to_string().contains(dtype.name()), "{error}");
        }
    }
}
