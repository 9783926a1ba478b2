//! Ragged streams as tensors.

use candle_core::{DType, Device, Result as CandleResult, Tensor};
use loaderx_core::view::{PackedBatch, PaddedBatch, RaggedBatch, Side};
use loaderx_core::{Error, ErrorKind, Result};

use crate::error::from_candle;
use crate::tensor::{Elements, tensor};

/// Ragged records filled up to one length: the form to train on, since every operation on it has a gradient.
///
/// Its stream is made by [`Ragged::padded`](loaderx_core::Ragged::padded), which gathers straight into this shape.
#[derive(Clone, Debug)]
pub struct Padded {
    /// `(records, width, *item_shape)`.
    pub values: Tensor,
    /// `(records, width)`, `U8`: 1 for data, 0 for padding.
    pub mask: Tensor,
    /// `(records)`, `U32`: rows of each record that are data.
    pub lengths: Tensor,
    /// The length that every record was filled up to.
    pub width: usize,
    /// On which side of a record the padding is.
    pub side: Side,
    rows: usize,
}

impl Padded {
    /// Rows of all records together, padding not counted: the tokens that a step works on.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The mask in the form that is added to attention scores: `(records, width)`, `F32`, 0 for data and
    /// `-f32::MAX` for padding.
    ///
    /// The number is finite, so that a row of padding only gives a uniform softmax and not NaN.
    ///
    /// # Errors
    ///
    /// Those of candle's operations.
    pub fn additive_mask(&self) -> CandleResult<Tensor> {
        // 1 -> 0 and 0 -> -MAX; the subtraction comes first, as MAX - MAX after a product may round.
        (self.mask.to_dtype(DType::F32)? - 1.0)? * f64::from(f32::MAX)
    }

    pub(crate) fn to_device(&self, device: &Device) -> CandleResult<Self> {
        Ok(Self {
            values: self.values.to_device(device)?,
            mask: self.mask.to_device(device)?,
            lengths: self.lengths.to_device(device)?,
            ..self.clone()
        })
    }
}

/// Ragged records one after the other, without padding: what variable-length attention takes.
///
/// `candle_nn::attention::flash_attn_varlen_cpu` wants `lengths`, `candle_flash_attn::flash_attn_varlen` wants
/// `cu_seqlens` under the same argument name. Neither has a gradient in candle 0.11: this form is for inference, such as
/// embedding a corpus.
#[derive(Clone, Debug)]
pub struct Packed {
    /// `(rows, *item_shape)`: the rows of all records.
    pub values: Tensor,
    /// `(records)`, `U32`: rows of each record.
    pub lengths: Tensor,
    /// `(records + 1)`, `U32`: where each record starts, and where the last ends.
    pub cu_seqlens: Tensor,
    /// `(rows)`, `U32`: each row's place within its record, from 0.
    pub positions: Tensor,
    /// Rows of the longest record.
    pub max_length: usize,
}

impl Packed {
    pub(crate) fn to_device(&self, device: &Device) -> CandleResult<Self> {
        Ok(Self {
            values: self.values.to_device(device)?,
            lengths: self.lengths.to_device(device)?,
            cu_seqlens: self.cu_seqlens.to_device(device)?,
            positions: self.positions.to_device(device)?,
            max_length: self.max_length,
        })
    }
}

/// Several ragged records to each row of one length: language-model training without padding.
///
/// Its stream is made by [`Ragged::packed`](loaderx_core::Ragged::packed).
#[derive(Clone, Debug)]
pub struct PackedRows {
    /// `(packed rows, row length, *item_shape)`.
    pub values: Tensor,
    /// `(packed rows, row length)`, `U32`: which sequence of its row a place belongs to, from 1; 0 for padding.
    pub segments: Tensor,
    /// `(packed rows, row length)`, `U32`: the place within its sequence, from 0; 0 for padding.
    pub positions: Tensor,
    /// Places that hold data.
    pub used: usize,
}

impl PackedRows {
    /// Which place may attend to which: `(packed rows, row length, row length)`, `U8`, 1 where both are data of one
    /// sequence.
    ///
    /// # Errors
    ///
    /// Those of candle's operations.
    pub fn attention_mask(&self) -> CandleResult<Tensor> {
        let (queries, keys) = (self.segments.unsqueeze(2)?, self.segments.unsqueeze(1)?);
        let data = keys.gt(0_u32)?.broadcast_as((keys.dim(0)?, keys.dim(2)?, keys.dim(2)?))?;
        queries.broadcast_eq(&keys)? * data
    }

    pub(crate) fn to_device(&self, device: &Device) -> CandleResult<Self> {
        Ok(Self {
            values: self.values.to_device(device)?,
            segments: self.segments.to_device(device)?,
            positions: self.positions.to_device(device)?,
            used: self.used,
        })
    }
}

pub(crate) fn padded(batch: PaddedBatch, elements: Elements) -> Result<Padded> {
    let (records, width) = (batch.records(), batch.width());
    let mask = numbers(batch.mask_of::<u8>(), &[records, width])?;
    let (values, lengths, side) = batch.into_parts();
    let rows = lengths.iter().map(|&length| usize::try_from(length).unwrap_or(0)).sum();
    let lengths = numbers(counts(&lengths)?, &[records])?;
    let (buffer, shape) = values.into_parts();
    Ok(Padded { values: tensor(buffer, &shape, elements)?, mask, lengths, width, side, rows })
}

pub(crate) fn packed(batch: RaggedBatch, elements: Elements) -> Result<Packed> {
    let (records, rows, max_length) = (batch.records(), batch.rows(), batch.max_length());
    let mut lengths = Vec::with_capacity(records);
    let mut positions = Vec::with_capacity(rows);
    for length in batch.lengths() {
        let length = count(length)?;
        lengths.push(length);
        positions.extend(0..length);
    }
    let shape = batch.values_shape();
    let (buffer, offsets, _) = batch.into_parts();
    Ok(Packed {
        values: tensor(buffer, &shape, elements)?,
        lengths: numbers(lengths, &[records])?,
        cu_seqlens: numbers(counts(&offsets)?, &[records + 1])?,
        positions: numbers(positions, &[rows])?,
        max_length,
    })
}

pub(crate) fn packed_rows(batch: PackedBatch, elements: Elements) -> Result<PackedRows> {
    let shape = [batch.rows(), batch.row_length()];
    let segments = numbers(counts(&batch.segment_ids())?, &shape)?;
    let positions = numbers(counts(&batch.position_ids())?, &shape)?;
    let used = batch.used();
    let (values, ..) = batch.into_parts();
    let (buffer, shape) = values.into_parts();
    Ok(PackedRows { values: tensor(buffer, &shape, elements)?, segments, positions, used })
}

fn numbers<T: candle_core::WithDType>(values: Vec<T>, shape: &[usize]) -> Result<Tensor> {
    Tensor::from_vec(values, shape, &Device::Cpu).map_err(from_candle)
}

fn counts<T: Copy + TryInto<u32> + std::fmt::Display>(values: &[T]) -> Result<Vec<u32>> {
    values.iter().map(|&value| count(value)).collect()
}

fn count<T: Copy + TryInto<u32> + std::fmt::Display>(value: T) -> Result<u32> {
    value.try_into().map_err(|_| {
        Error::new(
            ErrorKind::LimitExceeded,
            format!("lengths and offsets are 32-bit tensors and cannot say {value}"),
        )
        .with_hint("use a smaller batch")
    })
}
