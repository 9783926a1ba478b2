//! Gathered memory into tensors: moved where candle has the type, converted in one pass where it has not.

use candle_core::op::BackpropOp;
use candle_core::{CpuStorage, Storage, Tensor};
use loaderx_core::{Buffer, DType, Element, Error, ErrorKind, Result};

/// How the elements of a column become those of a tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Elements {
    /// By the table of [`tensor_dtype`](crate::tensor_dtype).
    #[default]
    Same,
    /// As `U32` class labels or ids, each value checked.
    Ids,
}

/// Makes a tensor on the CPU. The memory is moved, not copied, when the element type stays.
pub(crate) fn tensor(buffer: Buffer, shape: &[usize], elements: Elements) -> Result<Tensor> {
    let count = shape.iter().try_fold(1_usize, |product, &side| product.checked_mul(side));
    if count != Some(buffer.len()) {
        return Err(Error::invalid(format!("{} elements do not have the shape {shape:?}", buffer.len())));
    }
    let storage = match elements {
        Elements::Same => same(buffer)?,
        Elements::Ids => CpuStorage::U32(ids(buffer)?),
    };
    // The count was checked above, which this constructor leaves to its caller.
    Ok(Tensor::from_storage(Storage::Cpu(storage), shape, BackpropOp::none(), false))
}

/// Each arm's vector type follows from candle's variant.
fn same(buffer: Buffer) -> Result<CpuStorage> {
    Ok(match buffer.dtype() {
        DType::Bool | DType::U8 => CpuStorage::U8(buffer.into_vec()?),
        DType::U32 => CpuStorage::U32(buffer.into_vec()?),
        DType::I16 => CpuStorage::I16(buffer.into_vec()?),
        DType::I32 => CpuStorage::I32(buffer.into_vec()?),
        DType::I64 => CpuStorage::I64(buffer.into_vec()?),
        DType::F16 => CpuStorage::F16(buffer.into_vec()?),
        DType::BF16 => CpuStorage::BF16(buffer.into_vec()?),
        DType::F32 => CpuStorage::F32(buffer.into_vec()?),
        DType::F64 => CpuStorage::F64(buffer.into_vec()?),
        DType::I8 => CpuStorage::I16(buffer.as_slice::<i8>()?.iter().copied().map(i16::from).collect()),
        DType::U16 => CpuStorage::U32(buffer.as_slice::<u16>()?.iter().copied().map(u32::from).collect()),
        DType::U64 => CpuStorage::I64(checked::<u64, i64>(buffer, |value| i64::try_from(value).ok())?),
        other => return Err(refused(other, "candle has no element type for it")),
    })
}

/// Labels and ids. The largest `u32` is refused too: candle reads it as "no row" and selects zeros in silence.
fn ids(buffer: Buffer) -> Result<Vec<u32>> {
    match buffer.dtype() {
        DType::Bool | DType::U8 => Ok(buffer.as_slice::<u8>()?.iter().copied().map(u32::from).collect()),
        DType::U16 => Ok(buffer.as_slice::<u16>()?.iter().copied().map(u32::from).collect()),
        DType::U32 => {
            // Only looked at: the vector that leaves is the one that was gathered.
            let vec: Vec<u32> = buffer.into_vec()?;
            match vec.iter().position(|&value| value == u32::MAX) {
                Some(at) => Err(unfit(u32::MAX, at, DType::U32)),
                None => Ok(vec),
            }
        }
        DType::U64 => checked(buffer, |value: u64| u32::try_from(value).ok().filter(is_id)),
        DType::I8 => checked(buffer, |value: i8| u32::try_from(value).ok()),
        DType::I16 => checked(buffer, |value: i16| u32::try_from(value).ok()),
        DType::I32 => checked(buffer, |value: i32| u32::try_from(value).ok()),
        DType::I64 => checked(buffer, |value: i64| u32::try_from(value).ok().filter(is_id)),
        other => Err(refused(other, "labels and ids are whole numbers")),
    }
}

fn is_id(value: &u32) -> bool {
    *value != u32::MAX
}

/// Converts every element or names the first that cannot be. Vectors of equally large elements are reused.
fn checked<T: Element + std::fmt::Display, U>(
    buffer: Buffer,
    convert: impl Fn(T) -> Option<U>,
) -> Result<Vec<U>> {
    let dtype = buffer.dtype();
    let vec: Vec<T> = buffer.into_vec()?;
    let mut at = 0;
    vec.into_iter()
        .map(|value| {
            let converted = convert(value).ok_or_else(|| unfit(value, at, dtype));
            at += 1;
            converted
        })
        .collect()
}

fn unfit(value: impl std::fmt::Display, at: usize, dtype: DType) -> Error {
    Error::new(
        ErrorKind::OutOfRange,
        format!("element {at} of the batch is {value} ({dtype}), which the tensor's type cannot hold"),
    )
    .with_hint("labels and ids are 0 to 4294967294; u64 columns become I64 and end at 9223372036854775807")
}

fn refused(dtype: DType, why: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("a column of {dtype} cannot become this tensor: {why}"))
}
