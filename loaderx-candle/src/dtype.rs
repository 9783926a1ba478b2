//! Element types: which candle type a stored one becomes.

use candle_core::DType as CandleDType;
use loaderx_core::DType;

/// The element type of the tensor that a column of `dtype` becomes.
///
/// | stored | tensor | how |
/// |---|---|---|
/// | `bool` | `U8` | the same memory; candle's own masks are `U8` |
/// | `u8`, `u32`, `i16`, `i32`, `i64` | the type of that name | the same memory |
/// | `f16`, `bf16`, `f32`, `f64` | the type of that name | the same memory |
/// | `i8` | `I16` | widened: candle has no signed byte |
/// | `u16` | `U32` | widened: candle has no unsigned 16 bit, and `U32` is what it takes as ids |
/// | `u64` | `I64` | each value is checked, the first above `i64::MAX` is an error |
///
/// candle can hold `I16` and `I32` but takes neither as class labels nor as ids of an embedding: columns that are used
/// so leave as `U32`, see [`Columns::ids`](crate::Columns::ids).
///
/// # Examples
///
/// ```
/// use loaderx_core::DType;
///
/// assert_eq!(loaderx_candle::tensor_dtype(DType::U16), Some(candle_core::DType::U32));
/// ```
#[must_use]
pub fn tensor_dtype(dtype: DType) -> Option<CandleDType> {
    Some(match dtype {
        DType::Bool | DType::U8 => CandleDType::U8,
        DType::U16 | DType::U32 => CandleDType::U32,
        DType::I8 | DType::I16 => CandleDType::I16,
        DType::I32 => CandleDType::I32,
        DType::U64 | DType::I64 => CandleDType::I64,
        DType::F16 => CandleDType::F16,
        DType::BF16 => CandleDType::BF16,
        DType::F32 => CandleDType::F32,
        DType::F64 => CandleDType::F64,
        // `DType` may grow; a type that this version does not know is refused by name when its column is met.
        _ => return None,
    })
}
