use std::hint::black_box;

use candle_core::{DType, Device, Tensor};
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

    #[cfg(feature = "candle-datasets")]
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
    #[cfg(feature = "candle-datasets")]
    {
        let (mut step, mut left) = (0, Vec::new());
        // A new order for each pass, item by item: what its Batcher takes.
        let items = std::iter::from_fn(move || {
            if left.is_empty() {
                sampler.draw(step, &mut left);
                step += 1;
            }
            let index = left.pop()? as usize;
            Some(
                items
                    .get(index)
                    .cloned()
                    .zip(labels.get(index).ok())
                    .ok_or_else(|| candle_core::Error::Msg(format!("no item {index}"))),
            )
        });
        let mut batches = candle_datasets::Batcher::new_r2(items).batch_size(batch);
        systems.push(System {
            name: "candle-datasets, Batcher".into(),
            threads: 1,
            burst: burst(move || {
                black_box(batches.next().ok_or("an endless batcher ended")??);
                Ok(())
            }),
        });
    }
    Ok(())
}
