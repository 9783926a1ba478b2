//! Every element type becomes tensors of the same type, in the same memory.

use burn::tensor::{DType as BurnType, Device, Int, Tensor, TensorData, bf16, f16};
use loaderx_burn::{IntoPacked, IntoPadded, IntoTensor, burn_type, tensor_data};
use loaderx_core::buffer::{Allocator, Pool};
use loaderx_core::view::{PaddedBatch, Side};
use loaderx_core::{Buffer, DType, DenseBatch, Element, ErrorKind, RaggedBatch};

fn address(data: &TensorData) -> usize {
    data.as_bytes().as_ptr().addr()
}

/// Six elements in a vector, or in a pool.
fn buffers(dtype: DType) -> [Buffer; 2] {
    let pool = Pool::new();
    let fill = |room: loaderx_core::buffer::Room| {
        room.fill(|bytes| {
            let ones: Vec<u8> = (0..bytes.len()).map(|i| u8::from(i % dtype.size() == 0)).collect();
            Ok(bytes.write_copy_of_slice(&ones))
        })
        .unwrap()
    };
    [fill(loaderx_core::buffer::Vecs.room(dtype, 6).unwrap()), fill(pool.room(dtype, 6).unwrap())]
}

#[test]
fn every_type_keeps_its_memory_and_its_type_on_flex() {
    for device in [Device::flex(), Device::flex().autodiff()] {
        for dtype in DType::ALL {
            for buffer in buffers(dtype) {
                let (before, bytes) = (buffer.as_bytes().as_ptr().addr(), buffer.as_bytes().to_vec());
                let batch = DenseBatch::from_parts(buffer, vec![3, 2]).unwrap();
                let data = match burn_type(dtype).unwrap() {
                    BurnType::Bool(_) => batch.into_bool::<2>(&device).unwrap().into_data(),
                    float if float.is_float() => batch.into_float::<2>(&device).unwrap().into_data(),
                    _ => batch.into_int::<2>(&device).unwrap().into_data(),
                };
                assert_eq!(data.dtype(), burn_type(dtype).unwrap());
                assert_eq!(data.as_bytes(), bytes, "{dtype}");
                assert_eq!(address(&data), before, "{dtype} was copied");
            }
        }
    }
}

/// What the test above would not notice if `into_data` gave the memory of something else: burn's own conversion
/// does copy.
#[test]
fn the_pointer_comparison_sees_a_conversion() {
    let vec = vec![1_i64, 2, 3];
    let before = vec.as_ptr().addr();
    let data = tensor_data(Buffer::from(vec), &[3]).unwrap();
    assert_eq!(address(&data), before);
    let converted = Tensor::<1, Int>::from_data(data, &Device::flex()).into_data();
    assert_eq!(converted.dtype(), BurnType::I32);
    assert_ne!(address(&converted), before);
}

#[test]
fn values_arrive_as_they_are_stored() {
    fn same<T: Element + burn::tensor::Element>(values: Vec<T>) {
        let count = values.len();
        let data = tensor_data(Buffer::from(values.clone()), &[count]).unwrap();
        assert_eq!(data.as_slice::<T>().unwrap(), values);
    }
    same(vec![0_u8, 255]);
    same(vec![0_u16, u16::MAX]);
    same(vec![0_u32, u32::MAX]);
    same(vec![0_u64, u64::MAX]);
    same(vec![i8::MIN, i8::MAX]);
    same(vec![i16::MIN, i16::MAX]);
    same(vec![i32::MIN, i32::MAX]);
    same(vec![i64::MIN, i64::MAX]);
    same(vec![f16::from_f32(1.5), f16::MIN]);
    same(vec![bf16::from_f32(1.5), bf16::MAX]);
    same(vec![f32::MIN_POSITIVE, 1.5]);
    same(vec![f64::MIN_POSITIVE, 1.5]);
}

#[test]
fn pooled_memory_returns_when_the_tensor_is_dropped() {
    let pool = Pool::new();
    let room = pool.room(DType::U8, 4096).unwrap();
    let buffer = room.fill(|bytes| Ok(bytes.write_copy_of_slice(&[7; 4096]))).unwrap();
    let batch = DenseBatch::from_parts(buffer, vec![4096]).unwrap();
    let tensor = batch.into_int::<1>(&Device::flex()).unwrap();
    assert_eq!(pool.idle_bytes(), 0);
    let copy = tensor.clone() + 1;
    drop(tensor);
    assert!(pool.idle_bytes() >= 4096);
    assert_eq!(copy.into_data().as_slice::<u8>().unwrap(), [8; 4096]);
}

#[test]
fn an_operation_in_place_leaves_pooled_memory_alone() {
    let pool = Pool::new();
    let room = pool.room(DType::F32, 2).unwrap();
    let bytes = [1.0_f32.to_le_bytes(), 2.0_f32.to_le_bytes()].concat();
    let buffer = room.fill(|room| Ok(room.write_copy_of_slice(&bytes))).unwrap();
    let tensor = DenseBatch::from_parts(buffer, vec![2]).unwrap().into_float::<1>(&Device::flex()).unwrap();
    // The only reference: burn works in place where it may.
    assert_eq!((tensor * 2.0).into_data().as_slice::<f32>().unwrap(), [2.0, 4.0]);
    assert!(pool.idle_bytes() > 0);
}

#[test]
fn another_kind_or_rank_is_refused_by_name() {
    let batch = DenseBatch::from_parts(vec![1_u8, 2, 3, 4].into(), vec![2, 2]).unwrap();
    let error = batch.clone().into_float::<2>(&Device::flex()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaMismatch);
    assert!(error.to_string().contains("u8") && error.to_string().contains("int"), "{error}");
    assert!(batch.clone().into_bool::<2>(&Device::flex()).is_err());
    let error = batch.into_int::<3>(&Device::flex()).unwrap_err();
    assert!(error.to_string().contains("[2, 2]") && error.to_string().contains('3'), "{error}");
    let error = tensor_data(vec![1_u8, 2, 3].into(), &[2, 2]).unwrap_err();
    assert!(error.to_string().contains("[2, 2]"), "{error}");
}

#[test]
fn ragged_batches_come_padded_with_a_mask_and_packed() {
    let device = Device::flex();
    let values = vec![1.0_f32, 1.5, 2.0, 2.5, 3.0, 3.5];
    let start = values.as_ptr().addr();
    let ragged = RaggedBatch::from_parts(values.into(), vec![0, 1, 1, 3], vec![2]).unwrap();
    let packed = ragged.into_packed_float::<2>(&device).unwrap();
    assert_eq!((packed.values.dims(), packed.max_length), ([3, 2], 2));
    assert_eq!(packed.cu_seqlens.into_data().as_slice::<i32>().unwrap(), [0, 1, 1, 3]);
    assert_eq!(address(&packed.values.into_data()), start);

    let tokens = DenseBatch::from_parts(vec![0_i64, 0, 9, 0, 7, 8].into(), vec![2, 3]).unwrap();
    let start = tokens.data().as_bytes().as_ptr().addr();
    let padded = PaddedBatch::from_parts(tokens, vec![1, 2], Side::Left).unwrap();
    let padded = padded.into_padded_int::<2>(&device).unwrap();
    assert_eq!(padded.lengths.into_data().as_slice::<i64>().unwrap(), [1, 2]);
    assert_eq!(padded.mask.into_data().as_slice::<bool>().unwrap(), [false, false, true, false, true, true]);
    assert_eq!(address(&padded.values.into_data()), start);
}
