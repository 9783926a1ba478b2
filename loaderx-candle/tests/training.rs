//! Loops that candle users write: gradients, pairs, resume, passes, errors.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashSet;
use std::path::Path;

use candle_core::{DType as CandleDType, Device, Result, Tensor, Var};
use loaderx_candle::{BatchIterator, Columns, Packed, PackedRows, Padded, TensorBatch, TensorLoader};
use loaderx_core::loader::LoaderBuilder;
use loaderx_core::sampler::{Cyclic, Sequential};
use loaderx_core::{Batch, Codec, DType, Dense, DenseWriter, Loader, LoaderState};

const RECORDS: u64 = 23;

/// Inputs of 3 values and the target that a linear model could find.
fn stores(directory: &Path) -> (Dense, Dense) {
    let inputs = DenseWriter::create(directory.join("x"), DType::F32, &[3], Codec::Raw).unwrap();
    let targets = DenseWriter::create(directory.join("y"), DType::F32, &[1], Codec::Raw).unwrap();
    for record in 0..RECORDS {
        let x = row(record);
        inputs.append(x).unwrap();
        targets.append([x[0] - 2.0 * x[1] + 0.5]).unwrap();
    }
    (inputs.finish().unwrap(), targets.finish().unwrap())
}

fn row(record: u64) -> [f32; 3] {
    let n = f32::from(u8::try_from(record).unwrap());
    [n.sin(), n.cos(), (n * 0.7).sin()]
}

fn builder(directory: &Path, workers: usize) -> LoaderBuilder<Batch> {
    let open = |name| Dense::open(directory.join(name)).unwrap();
    Loader::builder()
        .stream("x", open("x"))
        .stream("y", open("y"))
        .sampler(Cyclic::new(RECORDS, 4, 7).unwrap())
        .workers(workers)
}

fn loader(directory: &Path, workers: usize) -> TensorLoader {
    TensorLoader::new(builder(directory, workers), Columns::new()).unwrap()
}

fn values(batch: &TensorBatch) -> (u64, Vec<Vec<f32>>, Vec<Vec<f32>>) {
    let values = |name| batch.tensor(name).unwrap().to_vec2().unwrap();
    (batch.step(), values("x"), values("y"))
}

struct Linear {
    weight: Var,
    bias: Var,
}

impl Linear {
    fn new() -> Self {
        let weight = Var::new(&[[0.1_f32], [-0.2], [0.3]], &Device::Cpu).unwrap();
        Self { weight, bias: Var::new(&[0.05_f32], &Device::Cpu).unwrap() }
    }

    /// The mean squared error and its gradients.
    fn loss(&self, xs: &Tensor, ys: &Tensor) -> (f32, Vec<f32>, Vec<f32>) {
        let predicted = xs.matmul(&self.weight).unwrap().broadcast_add(&self.bias).unwrap();
        let loss = (predicted - ys).unwrap().sqr().unwrap().mean_all().unwrap();
        let gradients = loss.backward().unwrap();
        let gradient = |var: &Var| gradients.get(var).unwrap().flatten_all().unwrap().to_vec1().unwrap();
        (loss.to_scalar().unwrap(), gradient(&self.weight), gradient(&self.bias))
    }

    fn step(&self, xs: &Tensor, ys: &Tensor) -> f32 {
        let (loss, weight, bias) = self.loss(xs, ys);
        for (var, gradient) in [(&self.weight, weight), (&self.bias, bias)] {
            let gradient = Tensor::from_vec(gradient, var.shape(), &Device::Cpu).unwrap();
            var.set(&(var.as_tensor() - (gradient * 0.1).unwrap()).unwrap()).unwrap();
        }
        loss
    }
}

#[test]
fn a_steps_gradient_is_that_of_tensors_made_by_hand() {
    let directory = tempfile::tempdir().unwrap();
    stores(directory.path());
    let model = Linear::new();
    for batch in loader(directory.path(), 2).take(12) {
        let batch = batch.unwrap();
        let mut xs = Vec::new();
        let mut ys = Vec::new();
        for &record in batch.indices() {
            let x = row(record);
            xs.extend(x);
            ys.push(x[0] - 2.0 * x[1] + 0.5);
        }
        let xs = Tensor::from_slice(&xs, (4, 3), &Device::Cpu).unwrap();
        let ys = Tensor::from_slice(&ys, (4, 1), &Device::Cpu).unwrap();
        let expected = model.loss(&xs, &ys);
        assert!(expected.1.iter().any(|&gradient| gradient != 0.0));
        assert_eq!(model.loss(batch.tensor("x").unwrap(), batch.tensor("y").unwrap()), expected);
        model.step(&xs, &ys);
    }
}

#[test]
fn a_loop_over_pairs_trains() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    stores(directory.path());
    let model = Linear::new();
    let mut losses = Vec::new();
    for batch in loader(directory.path(), 1).pairs("x", "y").take(300) {
        let (xs, ys) = batch?;
        losses.push(model.step(&xs, &ys));
    }
    let mean = |losses: &[f32]| losses.iter().sum::<f32>() / 20.0;
    assert!(mean(&losses[280..]) < 0.01 * mean(&losses[..20]), "{losses:?}");
    Ok(())
}

#[test]
fn pairs_and_tensors_are_the_batchers_items() {
    let directory = tempfile::tempdir().unwrap();
    stores(directory.path());
    // What a loop over candle_datasets::Batcher is written for.
    fn of_two(mut items: impl Iterator<Item = Result<(Tensor, Tensor)>>) -> (Tensor, Tensor) {
        items.next().unwrap().unwrap()
    }
    fn of_one(mut items: impl Iterator<Item = Result<Tensor>>) -> Tensor {
        items.next().unwrap().unwrap()
    }
    let (xs, ys) = of_two(loader(directory.path(), 0).pairs("x", "y"));
    let alone = of_one(loader(directory.path(), 0).tensors("x"));
    assert_eq!((xs.dims(), ys.dims()), ([4, 3].as_slice(), [4, 1].as_slice()));
    assert_eq!(alone.to_vec2::<f32>().unwrap(), xs.to_vec2::<f32>().unwrap());

    let mut pairs = loader(directory.path(), 0).pairs("x", "y");
    pairs.next().unwrap().unwrap();
    assert_eq!(pairs.get_ref().step(), 1);
    pairs.get_mut().seek(0);
    assert_eq!(pairs.next().unwrap().unwrap().0.to_vec2::<f32>().unwrap(), xs.to_vec2::<f32>().unwrap());
}

#[test]
fn a_resumed_loader_delivers_the_batches_of_an_unbroken_run() {
    let directory = tempfile::tempdir().unwrap();
    stores(directory.path());
    let whole: Vec<_> = loader(directory.path(), 0).take(20).map(|batch| values(&batch.unwrap())).collect();
    for workers in [0, 1, 2, 7] {
        for stop in [0, 1, 5, 6, 13] {
            let mut first = loader(directory.path(), workers);
            let before: Vec<_> = first.by_ref().take(stop).map(|batch| values(&batch.unwrap())).collect();
            let saved = first.state().to_bytes().unwrap();
            drop(first);
            let mut second = loader(directory.path(), 2);
            second.resume(&LoaderState::from_bytes(&saved).unwrap()).unwrap();
            let after: Vec<_> = second.take(20 - stop).map(|batch| values(&batch.unwrap())).collect();
            assert_eq!([before, after].concat(), whole, "workers {workers}, stop {stop}");
        }
    }
}

#[test]
fn losses_after_a_resume_are_those_of_an_unbroken_run() {
    let directory = tempfile::tempdir().unwrap();
    stores(directory.path());
    let train = |model: &Linear, loader: &mut TensorLoader, steps| -> Vec<f32> {
        let pairs = loader.by_ref().pairs("x", "y").take(steps);
        pairs.map(|pair| pair.unwrap()).map(|(xs, ys)| model.step(&xs, &ys)).collect()
    };
    let whole = train(&Linear::new(), &mut loader(directory.path(), 1), 30);

    let (model, mut first) = (Linear::new(), loader(directory.path(), 2));
    let mut broken = train(&model, &mut first, 11);
    let saved = first.state();
    drop(first);
    let mut second = loader(directory.path(), 0);
    second.resume(&saved).unwrap();
    broken.extend(train(&model, &mut second, 19));
    assert_eq!(broken, whole);
}

#[test]
fn a_state_of_another_configuration_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    stores(directory.path());
    let saved = loader(directory.path(), 0).state();
    let other = builder(directory.path(), 0).sampler(Cyclic::new(RECORDS, 4, 8).unwrap());
    let error = TensorLoader::new(other, Columns::new()).unwrap().resume(&saved).unwrap_err().to_string();
    assert!(error.contains("another sampler"), "{error}");
}

#[test]
fn a_pass_has_every_record_once_and_leaves_training_where_it_was() {
    let directory = tempfile::tempdir().unwrap();
    stores(directory.path());
    let mut loader = loader(directory.path(), 2);
    let expected: Vec<_> = loader.by_ref().take(4).map(|batch| values(&batch.unwrap())).collect();
    loader.seek(2);
    let pass = loader.pass(5).unwrap();
    assert_eq!((pass.records(), pass.steps()), (RECORDS, 5));
    let mut seen = Vec::new();
    let mut last = 0;
    for batch in pass {
        let batch = batch.unwrap();
        seen.extend_from_slice(batch.indices());
        last = batch.tensor("x").unwrap().dim(0).unwrap();
    }
    assert_eq!((seen, last), ((0..RECORDS).collect(), 3));
    let again: Vec<_> = loader.take(2).map(|batch| values(&batch.unwrap())).collect();
    assert_eq!(again, expected[2..]);
}

#[test]
fn batches_own_their_memory_and_belong_to_no_graph() {
    let directory = tempfile::tempdir().unwrap();
    stores(directory.path());
    let mut loader = loader(directory.path(), 2);
    let first = loader.next().unwrap().unwrap();
    let kept = values(&first);
    for batch in loader.by_ref().take(20) {
        let batch = batch.unwrap();
        for name in batch.names() {
            let tensor = batch.tensor(name).unwrap();
            let (storage, layout) = tensor.storage_and_layout();
            let candle_core::Storage::Cpu(candle_core::CpuStorage::F32(vec)) = &*storage else {
                unreachable!("made on the CPU of f32")
            };
            assert_eq!((vec.len(), layout.start_offset()), (tensor.elem_count(), 0));
            assert!(layout.is_contiguous() && !tensor.track_op() && !tensor.is_variable());
        }
    }
    assert_eq!(values(&first), kept);
}

#[test]
fn mistakes_are_named() {
    let directory = tempfile::tempdir().unwrap();
    stores(directory.path());
    let text = |error: candle_core::Error| error.to_string();
    let mut loader = loader(directory.path(), 1);
    let batch = loader.next().unwrap().unwrap();
    let error = text(batch.tensor("z").unwrap_err());
    assert!(error.contains("\"z\"") && error.contains("[\"x\", \"y\"]"), "{error}");
    let error = text(batch.padded("x").unwrap_err());
    assert!(error.contains("dense") && error.contains("padded"), "{error}");
    let error = text(batch.packed("x").unwrap_err());
    assert!(error.contains("dense") && error.contains("packed"), "{error}");
    let error = text(loader.by_ref().pairs("x", "label").next().unwrap().unwrap_err());
    assert!(error.contains("\"label\""), "{error}");
    let error = text(loader.pass(0).unwrap_err());
    assert!(error.contains('0'), "{error}");

    let unknown = TensorLoader::new(builder(directory.path(), 1), Columns::new().ids("label"));
    let error = text(unknown.unwrap().next().unwrap().unwrap_err());
    assert!(error.contains("\"label\"") && error.contains("[\"x\", \"y\"]"), "{error}");

    let error = text(TensorLoader::new(Loader::builder(), Columns::new()).unwrap_err());
    assert!(error.contains("no stream"), "{error}");
}

#[test]
fn a_damaged_record_is_an_error_of_its_step_and_the_next_steps_come() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    let writer = DenseWriter::create(&path, DType::U8, &[256], Codec::zstd()).unwrap();
    for record in 0..8_u8 {
        // Four different bytes in a random order: it compresses, but each byte of the frame matters.
        let mut noise = u32::from(record) + 1;
        let bytes: Vec<u8> = (0..256)
            .map(|_| {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                noise.to_le_bytes()[3] % 4
            })
            .collect();
        writer.append(bytes).unwrap();
    }
    let view = writer.finish().unwrap();
    drop(view);
    let chunk = path.join("0.zr");
    let mut bytes = std::fs::read(&chunk).unwrap();
    let middle = bytes.len() / 2 + 20;
    bytes[middle] ^= 0x55;
    std::fs::write(&chunk, bytes).unwrap();

    let builder = Loader::builder()
        .stream("x", Dense::open(&path).unwrap())
        .sampler(Sequential::new(8, 1).unwrap())
        .workers(2);
    let steps: Vec<Result<TensorBatch>> =
        TensorLoader::new(builder, Columns::new()).unwrap().take(8).collect();
    let failed: HashSet<usize> = (0..8).filter(|&step| steps[step].is_err()).collect();
    assert_eq!(failed.len(), 1, "one record was damaged");
    for (step, batch) in steps.into_iter().enumerate() {
        match batch {
            Ok(batch) => assert_eq!(batch.step(), step as u64),
            Err(error) => {
                let error = error.to_string();
                assert!(error.contains("corrupt") && error.contains(&format!("record {step}")), "{error}");
                assert!(error.contains("\"x\""), "{error}");
            }
        }
    }
}

#[test]
fn what_travels_between_threads_may() {
    fn sendable<T: Send + 'static>() {}
    sendable::<TensorLoader>();
    sendable::<TensorBatch>();
    sendable::<Padded>();
    sendable::<Packed>();
    sendable::<PackedRows>();
}

#[test]
fn the_device_asked_for_is_the_device_delivered() {
    let directory = tempfile::tempdir().unwrap();
    stores(directory.path());
    let batch = loader(directory.path(), 0).on(&Device::Cpu).next().unwrap().unwrap();
    let moved = batch.to_device(&Device::Cpu).unwrap();
    assert!(moved.tensor("x").unwrap().device().is_cpu());
    assert_eq!(moved.tensor("x").unwrap().dtype(), CandleDType::F32);
    assert_eq!(values(&moved), values(&batch));
}
