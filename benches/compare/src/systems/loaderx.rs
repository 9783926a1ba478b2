use std::hint::black_box;

use loaderx_core::sampler::{Cyclic, Iid, Sampler};
use loaderx_core::view::{Request, Source};
use loaderx_core::{Dense, Loader, Ragged};

use super::batches;
use crate::data::Data;
use crate::harness::{Outcome, System, burst};
use crate::work::{Task, Work};

/// loaderx's own rows.
pub(crate) fn add(systems: &mut Vec<System<'_>>, work: &Work, data: &Data) -> Outcome<()> {
    match work.task {
        Task::Draw { cyclic } => systems.push(draw(work, cyclic)?),
        Task::Gather => {
            systems.push(gather(work, data)?);
            // Decoding is worth a second thread within the batch.
            if work.codec != "raw" {
                systems.push(gather_with_threads(work, data, 2)?);
            }
        }
        Task::Load | Task::LoadFloat => {
            for workers in [1, 0, 2] {
                systems.push(load(work, data, workers)?);
            }
        }
    }
    Ok(())
}

fn draw<'a>(work: &Work, cyclic: bool) -> Outcome<System<'a>> {
    let sampler: Box<dyn Sampler> = if cyclic {
        Box::new(Cyclic::new(60_000, work.batch, 1)?)
    } else {
        Box::new(Iid::new(60_000, work.batch, 1)?)
    };
    let mut drawn = Vec::new();
    let mut step = 0;
    Ok(System {
        name: "loaderx".into(),
        threads: 1,
        burst: burst(move || {
            sampler.draw(step, &mut drawn);
            black_box(&drawn);
            step += 1;
            Ok(())
        }),
    })
}

fn gather<'a>(work: &Work, data: &Data) -> Outcome<System<'a>> {
    let path = data.store(work.set, work.codec);
    let mut step = 0;
    let burst = if work.set.is_ragged() {
        let view = Ragged::open(path)?;
        let batches = batches(view.len(), work.batch);
        burst(move || {
            black_box(view.batch(&batches[step % batches.len()])?);
            step += 1;
            Ok(())
        })
    } else {
        let view = Dense::open(path)?;
        let batches = batches(view.len(), work.batch);
        burst(move || {
            black_box(view.batch(&batches[step % batches.len()])?);
            step += 1;
            Ok(())
        })
    };
    Ok(System { name: "loaderx".into(), threads: 1, burst })
}

fn gather_with_threads<'a>(work: &Work, data: &Data, threads: usize) -> Outcome<System<'a>> {
    let path = data.store(work.set, work.codec);
    let view: Box<dyn Source> =
        if work.set.is_ragged() { Box::new(Ragged::open(path)?) } else { Box::new(Dense::open(path)?) };
    let batches = batches(view.len(), work.batch);
    let mut step = 0;
    let burst = burst(move || {
        let request = Request::new(&batches[step % batches.len()]).threads(threads);
        black_box(view.gather(&request)?);
        step += 1;
        Ok(())
    });
    Ok(System { name: format!("loaderx, {threads} threads"), threads, burst })
}

fn load<'a>(work: &Work, data: &Data, workers: usize) -> Outcome<System<'a>> {
    let images = Dense::open(data.store(work.set, work.codec))?;
    let labels = Dense::open(data.labels())?;
    let builder = Loader::builder()
        .sampler(Cyclic::new(images.len(), work.batch, 1)?)
        .stream("label", labels)
        .workers(workers);
    let builder = match work.task {
        Task::LoadFloat => builder.stream("image", images.to_f32().scale(1.0 / 255.0)?),
        _ => builder.stream("image", images),
    };
    let mut loader = builder.build()?;
    Ok(System {
        name: if workers == 1 { "loaderx".into() } else { format!("loaderx, {workers} workers") },
        threads: workers.max(1),
        burst: burst(move || {
            black_box(loader.next().ok_or("an endless loader ended")??);
            Ok(())
        }),
    })
}
