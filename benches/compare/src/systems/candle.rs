use std::hint::black_box;

use candle_core::{D, DType, Device, Tensor};
use loaderx_core::Dense;
use loaderx_core::sampler::{Cyclic, Sampler};

use crate::data::Data;
use crate::harness::{Outcome, System, burst};
use crate::work::{Task, Work};

/// candle's ways to feed a loop with `f32` images: everything in one tensor, or a tensor for each item.
pub(crate) fn add(systems: &mut Vec<System<'_>>, work: &Work, data: &Data) -> Outcome<()> {
    if work.task != Task::LoadFloat {
        return Ok(());
    }
    let view = Dense::open(data.store(work.set, work.codec))?;
    let labels = Dense::open(data.labels())?;
    let everything: Vec<u64> = (0..view.len()).collect();
    let (pixels, shape) = view.batch(&everything)?.into_vec::<u8>()?;
    let (labels, _) = labels.batch(&everything)?.into_vec::<u8>()?;
    let images = Tensor::from_vec(pixels, shape, &Device::Cpu)?.flatten_from(1)?.to_dtype(DType::F32)?;
    let images = (images / 255.)?;
    let labels = Tensor::from_vec(labels, everything.len(), &Device::Cpu)?.to_dtype(DType::U32)?;

    let items: Vec<Tensor> = (0..everything.len()).map(|i| images.get(i)).collect::<Result<_, _>>()?;
    let (sampler, batch) = (Cyclic::new(view.len(), work.batch, 1)?, work.batch);
    let mut step = 0;
    let mut drawn = Vec::new();
    let (whole, whole_labels, whole_sampler) = (images, labels.clone(), sampler.clone());
    systems.push(System {
        name: "candle, whole f32 tensor + index_select".into(),
        threads: 1,
        burst: burst(move || {
            whole_sampler.draw(step, &mut drawn);
            let ids: Vec<u32> = drawn.iter().map(|&index| index as u32).collect();
            let ids = Tensor::from_vec(ids, batch, &Device::Cpu)?;
            black_box((whole.index_select(&ids, 0)?, whole_labels.index_select(&ids, 0)?));
            step += 1;
            Ok(())
        }),
    });
    let mut step = 0;
    let mut drawn = Vec::new();
    systems.push(System {
        name: "candle, stack of item tensors (Batcher)".into(),
        threads: 1,
        burst: burst(move || {
            sampler.draw(step, &mut drawn);
            let rows: Vec<Tensor> = drawn.iter().map(|&index| items[index as usize].clone()).collect();
            let stacked = Tensor::stack(&rows, 0)?;
            let ids: Vec<u32> = drawn.iter().map(|&index| index as u32).collect();
            let labels = labels.index_select(&Tensor::from_vec(ids, batch, &Device::Cpu)?, D::Minus1)?;
            black_box((stacked, labels));
            step += 1;
            Ok(())
        }),
    });
    Ok(())
}
