//! Records of different lengths as tensors: padded with a mask, or one after the other.

use burn::tensor::{Bool, Device, Int, Tensor};
use loaderx_core::Result;
use loaderx_core::view::{PaddedBatch, RaggedBatch};

use crate::tensors::{boolean, float, int};

/// Padded records, of `D` dimensions: `[records, width, ...]`.
#[derive(Clone, Debug)]
pub struct Padded<V> {
    /// The elements, padding included.
    pub values: V,
    /// Rows of each record that are data, `i64` of shape `[records]`.
    pub lengths: Tensor<1, Int>,
    /// True for data and false for padding, `[records, width]`. burn's attention wants the opposite:
    /// `mask.bool_not()`.
    pub mask: Tensor<2, Bool>,
}

/// Records one after the other, of `D` dimensions: `[rows, ...]`.
#[derive(Clone, Debug)]
pub struct Packed<V> {
    /// The rows of all records.
    pub values: V,
    /// Where each record starts, in rows, and where the last one ends: `i32` of shape `[records + 1]`.
    pub cu_seqlens: Tensor<1, Int>,
    /// Rows of the longest record.
    pub max_length: usize,
}

/// Moves a padded batch into tensors.
///
/// ```
/// use burn::tensor::Device;
/// use loaderx_burn::IntoPadded;
/// use loaderx_core::view::{PaddedBatch, Side};
/// use loaderx_core::DenseBatch;
///
/// let tokens = DenseBatch::from_parts(vec![7_i64, 8, 9, 5, 0, 0].into(), vec![2, 3])?;
/// let batch = PaddedBatch::from_parts(tokens, vec![3, 1], Side::Right)?.into_padded_int::<2>(&Device::flex())?;
/// assert_eq!(batch.values.dims(), [2, 3]);
/// assert_eq!(batch.mask.int().sum().into_scalar::<i64>(), 4);
/// # Ok::<(), loaderx_core::Error>(())
/// ```
pub trait IntoPadded: Sized {
    /// With float elements.
    ///
    /// # Errors
    ///
    /// As [`IntoTensor::into_float`](crate::IntoTensor::into_float).
    fn into_padded_float<const D: usize>(self, device: &Device) -> Result<Padded<Tensor<D>>>;

    /// With integers, such as tokens.
    ///
    /// # Errors
    ///
    /// As [`IntoTensor::into_int`](crate::IntoTensor::into_int).
    fn into_padded_int<const D: usize>(self, device: &Device) -> Result<Padded<Tensor<D, Int>>>;
}

impl IntoPadded for PaddedBatch {
    fn into_padded_float<const D: usize>(self, device: &Device) -> Result<Padded<Tensor<D>>> {
        let (lengths, mask) = sides(&self, device)?;
        let (values, shape) = self.into_parts().0.into_parts();
        Ok(Padded { values: float(values, &shape, device)?, lengths, mask })
    }

    fn into_padded_int<const D: usize>(self, device: &Device) -> Result<Padded<Tensor<D, Int>>> {
        let (lengths, mask) = sides(&self, device)?;
        let (values, shape) = self.into_parts().0.into_parts();
        Ok(Padded { values: int(values, &shape, device)?, lengths, mask })
    }
}

fn sides(batch: &PaddedBatch, device: &Device) -> Result<(Tensor<1, Int>, Tensor<2, Bool>)> {
    let lengths = int(batch.lengths().to_vec().into(), &[batch.records()], device)?;
    let (mask, shape) = batch.mask().into_parts();
    Ok((lengths, boolean(mask, &shape, device)?))
}

/// Moves a ragged batch into packed tensors.
///
/// ```
/// use burn::tensor::Device;
/// use loaderx_burn::IntoPacked;
/// use loaderx_core::RaggedBatch;
///
/// let batch = RaggedBatch::from_parts(vec![7_i64, 8, 9, 5].into(), vec![0, 3, 4], vec![])?;
/// let batch = batch.into_packed_int::<1>(&Device::flex())?;
/// assert_eq!((batch.values.dims(), batch.cu_seqlens.dims(), batch.max_length), ([4], [3], 3));
/// # Ok::<(), loaderx_core::Error>(())
/// ```
pub trait IntoPacked: Sized {
    /// With float elements.
    ///
    /// # Errors
    ///
    /// As [`IntoTensor::into_float`](crate::IntoTensor::into_float); with more than 2^31 - 1 rows.
    fn into_packed_float<const D: usize>(self, device: &Device) -> Result<Packed<Tensor<D>>>;

    /// With integers, such as tokens.
    ///
    /// # Errors
    ///
    /// As [`IntoTensor::into_int`](crate::IntoTensor::into_int); with more than 2^31 - 1 rows.
    fn into_packed_int<const D: usize>(self, device: &Device) -> Result<Packed<Tensor<D, Int>>>;
}

impl IntoPacked for RaggedBatch {
    fn into_packed_float<const D: usize>(self, device: &Device) -> Result<Packed<Tensor<D>>> {
        let (cu_seqlens, max_length, shape) = course(&self, device)?;
        Ok(Packed { values: float(self.into_parts().0, &shape, device)?, cu_seqlens, max_length })
    }

    fn into_packed_int<const D: usize>(self, device: &Device) -> Result<Packed<Tensor<D, Int>>> {
        let (cu_seqlens, max_length, shape) = course(&self, device)?;
        Ok(Packed { values: int(self.into_parts().0, &shape, device)?, cu_seqlens, max_length })
    }
}

fn course(batch: &RaggedBatch, device: &Device) -> Result<(Tensor<1, Int>, usize, Vec<usize>)> {
    let offsets = batch.cu_seqlens()?;
    let places = offsets.len();
    Ok((int(offsets.into(), &[places], device)?, batch.max_length(), batch.values_shape()))
}
