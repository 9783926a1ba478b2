//! Element types and memory: from a batch's buffer to burn's `TensorData`, without a copy.

use burn::tensor::{AllocationProperty, BoolStore, Bytes, DType as BurnType, TensorData};
use loaderx_core::{Buffer, DType, Error, ErrorKind, Result};

/// burn's name for an element type. Each has one, so every store can become tensors.
///
/// Unsigned integers are elements of burn's `Int` tensors. Truth values are bytes of 0 and 1 in burn, too.
///
/// # Errors
///
/// [`ErrorKind::Unsupported`] for a type that a later version of the core knows and this one does not.
pub fn burn_type(dtype: DType) -> Result<BurnType> {
    Ok(match dtype {
        DType::Bool => BurnType::Bool(BoolStore::Native),
        DType::U8 => BurnType::U8,
        DType::U16 => BurnType::U16,
        DType::U32 => BurnType::U32,
        DType::U64 => BurnType::U64,
        DType::I8 => BurnType::I8,
        DType::I16 => BurnType::I16,
        DType::I32 => BurnType::I32,
        DType::I64 => BurnType::I64,
        DType::F16 => BurnType::F16,
        DType::BF16 => BurnType::BF16,
        DType::F32 => BurnType::F32,
        DType::F64 => BurnType::F64,
        other => return Err(unknown(other)),
    })
}

fn unknown(dtype: DType) -> Error {
    Error::new(ErrorKind::Unsupported, format!("loaderx-burn knows no tensor of {dtype}"))
}

/// The buffer as burn's tensor data of this shape: the same memory, not a copy.
///
/// A typed vector (what [`Vecs`](loaderx_core::buffer::Vecs) allocates) becomes bytes that burn may change in place.
/// Memory of a [`Pool`](loaderx_core::buffer::Pool) becomes shared bytes: it returns to the pool when the last
/// tensor over it is dropped, and burn copies it at the first operation that would change it in place.
///
/// ```
/// use burn::tensor::DType;
/// use loaderx_burn::tensor_data;
/// use loaderx_core::Buffer;
///
/// let data = tensor_data(Buffer::from(vec![1_i64, 2, 3, 4]), &[2, 2])?;
/// assert_eq!((data.dtype(), data.as_slice::<i64>().unwrap()), (DType::I64, &[1, 2, 3, 4][..]));
/// # Ok::<(), loaderx_core::Error>(())
/// ```
///
/// # Errors
///
/// When the shape does not have as many elements as the buffer.
pub fn tensor_data(buffer: Buffer, shape: &[usize]) -> Result<TensorData> {
    let dtype = burn_type(buffer.dtype())?;
    TensorData::try_from_bytes(into_bytes(buffer)?, shape.to_vec(), dtype).map_err(|error| {
        Error::new(ErrorKind::InvalidArgument, format!("the batch does not have the shape {shape:?}"))
            .caused_by(error)
    })
}

fn into_bytes(buffer: Buffer) -> Result<Bytes> {
    if !buffer.is_vec() {
        // "Other" tells the backends that this is neither their own allocation nor pinned memory.
        return Ok(Bytes::from_shared(bytes::Bytes::from_owner(buffer), AllocationProperty::Other));
    }
    // The vectors keep their element types: burn frees memory with the alignment it was allocated with, and copies
    // what comes as a vector of bytes.
    Ok(match buffer.dtype() {
        DType::Bool | DType::U8 => Bytes::from_elems(buffer.into_vec::<u8>()?),
        DType::U16 => Bytes::from_elems(buffer.into_vec::<u16>()?),
        DType::U32 => Bytes::from_elems(buffer.into_vec::<u32>()?),
        DType::U64 => Bytes::from_elems(buffer.into_vec::<u64>()?),
        DType::I8 => Bytes::from_elems(buffer.into_vec::<i8>()?),
        DType::I16 => Bytes::from_elems(buffer.into_vec::<i16>()?),
        DType::I32 => Bytes::from_elems(buffer.into_vec::<i32>()?),
        DType::I64 => Bytes::from_elems(buffer.into_vec::<i64>()?),
        DType::F16 => Bytes::from_elems(buffer.into_vec::<burn::tensor::f16>()?),
        DType::BF16 => Bytes::from_elems(buffer.into_vec::<burn::tensor::bf16>()?),
        DType::F32 => Bytes::from_elems(buffer.into_vec::<f32>()?),
        DType::F64 => Bytes::from_elems(buffer.into_vec::<f64>()?),
        other => return Err(unknown(other)),
    })
}
