//! Numbers of other formats as the bytes of an element type, or a refusal when the type cannot hold them.

use half::{bf16, f16};

use crate::dtype::DType;

/// Appends the bytes of `value` as `dtype`; `false` when the type cannot hold it exactly. Floating point types take
/// every number, rounded.
pub(super) fn encode_float(value: f64, dtype: DType, out: &mut Vec<u8>) -> bool {
    match dtype {
        DType::F16 => out.extend(f16::from_f64(value).to_le_bytes()),
        DType::BF16 => out.extend(bf16::from_f64(value).to_le_bytes()),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "rounding to the column's type is what is asked for"
        )]
        DType::F32 => out.extend((value as f32).to_le_bytes()),
        DType::F64 => out.extend(value.to_le_bytes()),
        _ => return whole(value).is_some_and(|value| encode_whole(value, dtype, out)),
    }
    true
}

/// As [`encode_float`], for an integer.
#[cfg(any(feature = "csv", feature = "json"))]
#[expect(
    clippy::cast_precision_loss,
    reason = "a floating point column rounds, as its type is documented to"
)]
pub(super) fn encode_integer(value: i128, dtype: DType, out: &mut Vec<u8>) -> bool {
    match dtype {
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => encode_float(value as f64, dtype, out),
        _ => encode_whole(value, dtype, out),
    }
}

fn encode_whole(value: i128, dtype: DType, out: &mut Vec<u8>) -> bool {
    macro_rules! integer {
        ($type:ty) => {
            match <$type>::try_from(value) {
                Ok(value) => out.extend(value.to_le_bytes()),
                Err(_) => return false,
            }
        };
    }
    match dtype {
        DType::Bool => match value {
            0 | 1 => out.push(u8::from(value == 1)),
            _ => return false,
        },
        DType::U8 => integer!(u8),
        DType::U16 => integer!(u16),
        DType::U32 => integer!(u32),
        DType::U64 => integer!(u64),
        DType::I8 => integer!(i8),
        DType::I16 => integer!(i16),
        DType::I32 => integer!(i32),
        DType::I64 => integer!(i64),
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => return false,
    }
    true
}

/// The integer that `value` is exactly.
fn whole(value: f64) -> Option<i128> {
    // Beyond 2^64 no integer column can hold it, and up to there the conversion is exact.
    (value.fract() == 0.0 && value.abs() <= 18_446_744_073_709_551_616.0).then(|| {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within range, as just checked")]
        let integer = value as i128;
        integer
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(value: f64, dtype: DType) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        encode_float(value, dtype, &mut out).then_some(out)
    }

    #[test]
    fn numbers_fit_or_are_refused() {
        assert_eq!(fits(255.0, DType::U8), Some(vec![255]));
        assert_eq!(fits(256.0, DType::U8), None);
        assert_eq!(fits(-1.0, DType::U64), None);
        assert_eq!(fits(3.0, DType::I16), Some(vec![3, 0]));
        assert_eq!(fits(3.5, DType::I16), None);
        assert_eq!(fits(f64::NAN, DType::I64), None);
        assert_eq!(fits(2.0, DType::Bool), None);
        assert_eq!(fits(1.5, DType::F32), Some(1.5_f32.to_le_bytes().to_vec()));
        assert_eq!(fits(1.5, DType::BF16), Some(vec![0xc0, 0x3f]));
    }
}
