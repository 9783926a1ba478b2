//! Batches as tensors.

use burn::tensor::{Bool, DType as BurnType, Device, Int, Tensor};
use loaderx_core::loader::Batch;
use loaderx_core::{Buffer, DType, DenseBatch, Error, ErrorKind, Result};

use crate::data::{burn_type, tensor_data};

/// Moves a batch's memory into a tensor of the same element type.
///
/// No method converts: the tensor is made with the type that is stored, whatever the device's default types are.
/// (burn by itself would turn 64-bit integers into the 32-bit ones that Flex prefers, and bytes likewise.) Use
/// burn's `cast`, `float` and `int` where another type is wanted.
///
/// Call them on the thread that trains: tensors that are made on other threads cost a stream and memory pools each
/// on burn's GPU backends.
///
/// ```
/// use burn::tensor::{DType, Device};
/// use loaderx_burn::IntoTensor;
/// use loaderx_core::DenseBatch;
///
/// let device = Device::flex();
/// let batch = DenseBatch::from_parts(vec![0.5_f32, 1.5, 2.5, 3.5].into(), vec![2, 2])?;
/// let tensor = batch.into_float::<2>(&device)?;
/// assert_eq!((tensor.dims(), tensor.dtype()), ([2, 2], DType::F32));
///
/// // What is not a float is refused, not converted.
/// let batch = DenseBatch::from_parts(vec![7_i64, 8].into(), vec![2])?;
/// assert!(batch.clone().into_float::<1>(&device).is_err());
/// assert_eq!(batch.into_int::<1>(&device)?.dtype(), DType::I64);
/// # Ok::<(), loaderx_core::Error>(())
/// ```
pub trait IntoTensor: Sized {
    /// A tensor of `f16`, `bf16`, `f32` or `f64` elements.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SchemaMismatch`] when the elements are others, or the batch does not have `D` dimensions.
    fn into_float<const D: usize>(self, device: &Device) -> Result<Tensor<D>>;

    /// A tensor of integers, signed or unsigned.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SchemaMismatch`] when the elements are others, or the batch does not have `D` dimensions.
    fn into_int<const D: usize>(self, device: &Device) -> Result<Tensor<D, Int>>;

    /// A tensor of truth values.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SchemaMismatch`] when the elements are others, or the batch does not have `D` dimensions.
    fn into_bool<const D: usize>(self, device: &Device) -> Result<Tensor<D, Bool>>;
}

impl IntoTensor for DenseBatch {
    fn into_float<const D: usize>(self, device: &Device) -> Result<Tensor<D>> {
        let (data, shape) = self.into_parts();
        float(data, &shape, device)
    }

    fn into_int<const D: usize>(self, device: &Device) -> Result<Tensor<D, Int>> {
        let (data, shape) = self.into_parts();
        int(data, &shape, device)
    }

    fn into_bool<const D: usize>(self, device: &Device) -> Result<Tensor<D, Bool>> {
        let (data, shape) = self.into_parts();
        boolean(data, &shape, device)
    }
}

/// Takes a stream's dense column out of a batch as a tensor.
///
/// ```
/// use burn::tensor::Device;
/// use loaderx_burn::TakeTensor;
/// use loaderx_core::sampler::Sequential;
/// use loaderx_core::{Codec, DType, DenseWriter, Loader};
///
/// # let dir = tempfile::tempdir().unwrap();
/// let points = DenseWriter::create(dir.path().join("points"), DType::F32, &[2], Codec::Raw)?;
/// points.append([0.0_f32, 0.1, 1.0, 1.1])?;
/// let mut loader =
///     Loader::builder().stream("point", points.finish()?).sampler(Sequential::new(2, 2)?).build()?;
/// let mut batch = loader.next().unwrap()?;
/// assert_eq!(batch.take_float::<2>("point", &Device::flex())?.dims(), [2, 2]);
/// # Ok::<(), loaderx_core::Error>(())
/// ```
pub trait TakeTensor {
    /// A tensor of `f16`, `bf16`, `f32` or `f64` elements.
    ///
    /// # Errors
    ///
    /// As [`Batch::take_dense`] and [`IntoTensor::into_float`].
    fn take_float<const D: usize>(&mut self, stream: &str, device: &Device) -> Result<Tensor<D>>;

    /// A tensor of integers, signed or unsigned.
    ///
    /// # Errors
    ///
    /// As [`Batch::take_dense`] and [`IntoTensor::into_int`].
    fn take_int<const D: usize>(&mut self, stream: &str, device: &Device) -> Result<Tensor<D, Int>>;

    /// A tensor of truth values.
    ///
    /// # Errors
    ///
    /// As [`Batch::take_dense`] and [`IntoTensor::into_bool`].
    fn take_bool<const D: usize>(&mut self, stream: &str, device: &Device) -> Result<Tensor<D, Bool>>;
}

impl TakeTensor for Batch {
    fn take_float<const D: usize>(&mut self, stream: &str, device: &Device) -> Result<Tensor<D>> {
        self.take_dense(stream)?.into_float(device).map_err(|error| error.in_stream(stream))
    }

    fn take_int<const D: usize>(&mut self, stream: &str, device: &Device) -> Result<Tensor<D, Int>> {
        self.take_dense(stream)?.into_int(device).map_err(|error| error.in_stream(stream))
    }

    fn take_bool<const D: usize>(&mut self, stream: &str, device: &Device) -> Result<Tensor<D, Bool>> {
        self.take_dense(stream)?.into_bool(device).map_err(|error| error.in_stream(stream))
    }
}

pub(crate) fn float<const D: usize>(data: Buffer, shape: &[usize], device: &Device) -> Result<Tensor<D>> {
    let dtype = burn_type(data.dtype())?;
    check::<D>(data.dtype(), shape, Kind::Float)?;
    Ok(Tensor::from_data(tensor_data(data, shape)?, (device, dtype)))
}

pub(crate) fn int<const D: usize>(data: Buffer, shape: &[usize], device: &Device) -> Result<Tensor<D, Int>> {
    let dtype = burn_type(data.dtype())?;
    check::<D>(data.dtype(), shape, Kind::Int)?;
    Ok(Tensor::from_data(tensor_data(data, shape)?, (device, dtype)))
}

pub(crate) fn boolean<const D: usize>(
    data: Buffer,
    shape: &[usize],
    device: &Device,
) -> Result<Tensor<D, Bool>> {
    check::<D>(data.dtype(), shape, Kind::Bool)?;
    // burn keeps truth values in the form that the device prefers and takes no other wish.
    Ok(Tensor::from_data(tensor_data(data, shape)?, device))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Float,
    Int,
    Bool,
}

impl Kind {
    fn of(dtype: DType) -> Result<Self> {
        Ok(match burn_type(dtype)? {
            BurnType::Bool(_) => Self::Bool,
            dtype if dtype.is_float() => Self::Float,
            _ => Self::Int,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Float => "float",
            Self::Int => "int",
            Self::Bool => "bool",
        }
    }
}

/// Refuses what burn would answer with a panic.
fn check<const D: usize>(dtype: DType, shape: &[usize], wanted: Kind) -> Result<()> {
    let kind = Kind::of(dtype)?;
    if kind != wanted {
        let message = format!("elements of {dtype} are not those of a {} tensor", wanted.name());
        let hint =
            format!("take them as {} and convert the tensor where another type is wanted", kind.name());
        return Err(Error::new(ErrorKind::SchemaMismatch, message).with_hint(hint));
    }
    if shape.len() != D {
        let message = format!("a batch of shape {shape:?} is no tensor of {D} dimensions");
        return Err(Error::new(ErrorKind::SchemaMismatch, message));
    }
    Ok(())
}
