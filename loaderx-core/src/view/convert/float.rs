use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::affine::{Affine, BLOCK, Lane, Pairs};
use crate::buffer::{Filler, write_each, write_each_with};
use crate::dtype::DType;
use crate::error::Result;

/// Writes the elements of `stored` as floats, `x * factor + summand` each.
///
/// Elements are brought to `f32` (to `f64` when that is the target), multiplied, added to, and rounded to the target.
/// A multiplication and an addition, never a fused one: so every machine gives the same bits.
pub(super) fn write(
    from: DType,
    to: DType,
    affine: &Affine,
    stored: &[u8],
    filler: &mut Filler<'_>,
) -> Result<()> {
    let elements = stored.len() / from.size();
    match (from, to) {
        (DType::U8, DType::F32) => return bytes_to(affine, stored, filler, f32::to_le_bytes),
        (DType::U8, DType::BF16) => return bytes_to(affine, stored, filler, bf16_bytes),
        _ => {}
    }
    let part_of = |range: std::ops::Range<usize>| {
        stored.get(range.start * from.size()..range.end * from.size()).unwrap_or(&[])
    };
    if to == DType::F64 {
        let mut lanes = [0.0_f64; BLOCK];
        return affine.parts(elements, BLOCK, |range, pairs| {
            let lanes = lanes.get_mut(..range.len()).unwrap_or(&mut []);
            load_f64(from, part_of(range), lanes);
            apply_f64(lanes, pairs);
            filler.with(size_of_val(lanes), |room| write_each(lanes, room, f64::to_le_bytes))
        });
    }
    let mut lanes = [0.0_f32; BLOCK];
    affine.parts(elements, BLOCK, |range, pairs| {
        let lanes = lanes.get_mut(..range.len()).unwrap_or(&mut []);
        load_f32(from, part_of(range), lanes);
        apply_f32(lanes, pairs);
        store_f32(to, lanes, filler)
    })
}

/// The common case, images of bytes, in one loop instead of three.
fn bytes_to<const D: usize>(
    affine: &Affine,
    stored: &[u8],
    filler: &mut Filler<'_>,
    round: impl Fn(f32) -> [u8; D] + Copy,
) -> Result<()> {
    affine.parts::<f32>(stored.len(), usize::MAX, |range, pairs| {
        let source = stored.get(range).unwrap_or(&[]);
        filler.with(source.len() * D, |room| match pairs {
            Pairs::One(a, b) => write_each(source, room, |x| round(f32::from(x) * a + b)),
            Pairs::Each(a, b) => write_each_with(source, a, b, room, |x, a, b| round(f32::from(x) * a + b)),
        })
    })
}

macro_rules! lane {
    ($load:ident, $apply:ident, $lane:ty, $halves:ident) => {
        /// Replaces `lanes` by as many elements of `stored`.
        fn $load(from: DType, stored: &[u8], lanes: &mut [$lane]) {
            macro_rules! each {
                ($from:ty) => {
                    for (lane, &bytes) in lanes.iter_mut().zip(stored.as_chunks::<{ size_of::<$from>() }>().0)
                    {
                        *lane = <$from>::from_le_bytes(bytes) as $lane;
                    }
                };
            }
            match from {
                DType::Bool | DType::U8 => each!(u8),
                DType::U16 => each!(u16),
                DType::U32 => each!(u32),
                DType::U64 => each!(u64),
                DType::I8 => each!(i8),
                DType::I16 => each!(i16),
                DType::I32 => each!(i32),
                DType::I64 => each!(i64),
                DType::F32 => each!(f32),
                DType::F64 => {
                    for (lane, &bytes) in lanes.iter_mut().zip(stored.as_chunks::<8>().0) {
                        *lane = <$lane>::from_f64(f64::from_le_bytes(bytes));
                    }
                }
                DType::BF16 => {
                    for (lane, &bytes) in lanes.iter_mut().zip(stored.as_chunks::<2>().0) {
                        *lane = bf16::from_le_bytes(bytes).into();
                    }
                }
                DType::F16 => {
                    // A whole slice at once uses the processor's instruction where there is one.
                    let mut halves = [f16::ZERO; BLOCK];
                    for (half, &bytes) in halves.iter_mut().zip(stored.as_chunks::<2>().0) {
                        *half = f16::from_le_bytes(bytes);
                    }
                    if let Some(halves) = halves.get(..lanes.len()) {
                        halves.$halves(lanes);
                    }
                }
            }
        }

        fn $apply(lanes: &mut [$lane], pairs: Pairs<'_, $lane>) {
            match pairs {
                // Not a number times one is still the same one, but why pass over them.
                Pairs::One(a, b) if a == 1.0 && b == 0.0 => {}
                Pairs::One(a, b) => lanes.iter_mut().for_each(|lane| *lane = *lane * a + b),
                Pairs::Each(a, b) => {
                    for ((lane, &a), &b) in lanes.iter_mut().zip(a).zip(b) {
                        *lane = *lane * a + b;
                    }
                }
            }
        }
    };
}

lane!(load_f32, apply_f32, f32, convert_to_f32_slice);
lane!(load_f64, apply_f64, f64, convert_to_f64_slice);

/// Writes `lanes` rounded to `to`, which is `f16`, `bf16` or `f32`.
fn store_f32(to: DType, lanes: &[f32], filler: &mut Filler<'_>) -> Result<()> {
    let bytes = lanes.len() * to.size();
    match to {
        DType::BF16 => filler.with(bytes, |room| write_each(lanes, room, bf16_bytes)),
        DType::F16 => {
            let mut halves = [f16::ZERO; BLOCK];
            let halves = halves.get_mut(..lanes.len()).unwrap_or(&mut []);
            halves.convert_from_f32_slice(lanes);
            filler.with(bytes, |room| write_each(halves, room, f16::to_le_bytes))
        }
        _ => filler.with(bytes, |room| write_each(lanes, room, f32::to_le_bytes)),
    }
}

/// The nearest `bf16`, of two equally near ones the even one, as `half` rounds; without a branch, so that the loop over
/// many is vectorised.
fn bf16_bytes(x: f32) -> [u8; 2] {
    let bits = x.to_bits();
    let even = bits >> 16 & 1;
    let rounded = bits.wrapping_add(0x7fff + even) >> 16;
    // A bit of the mantissa is set, so that the cut does not make infinity of it.
    let nan = bits >> 16 | 0x40;
    let [low, high, ..] = if x.is_nan() { nan } else { rounded }.to_le_bytes();
    [low, high]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bf16_is_rounded_as_half_rounds() {
        // Every upper half with the lower halves around the rounding's borders.
        for upper in 0..=u16::MAX {
            for lower in [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff] {
                let x = f32::from_bits(u32::from(upper) << 16 | lower);
                assert_eq!(bf16_bytes(x), bf16::from_f32(x).to_le_bytes(), "{x:?} {:#x}", x.to_bits());
            }
        }
    }
}
