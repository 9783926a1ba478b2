//! The training loop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::{AdamConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::Device;

use crate::Result;
use crate::args::Args;
use crate::batches::{self, Digits};
use crate::checkpoint::{Checkpoints, Saved};
use crate::dataset::Mnist;
use crate::model::Network;
use crate::progress::Progress;

/// Steps between checkpoints.
const CHECKPOINT_EVERY: u64 = 500;

/// How training ended.
pub struct Trained {
    /// The network as it is now.
    pub network: Network,
    /// Whether Ctrl-C ended it.
    pub stopped: bool,
}

/// What training starts from: a fresh network, or a checkpoint.
struct Start {
    network: Network,
    optimizer: ModuleOptimizer,
    saved: Option<loaderx_core::LoaderState>,
}

impl Start {
    fn new(args: &Args, checkpoints: Option<&Checkpoints>, device: &Device) -> Result<Self> {
        let optimizer = AdamConfig::new().init();
        if let (Some(checkpoints), true) = (checkpoints, args.resume) {
            let Some((step, path)) = checkpoints.newest()? else {
                return Err("there is no checkpoint to resume from; start without --resume".into());
            };
            let Saved { network, optimizer, loader, lr } = Saved::load(&path, device, optimizer)?;
            if lr.to_bits() != args.lr.to_bits() {
                return Err(format!("{} was trained with --lr {lr}, not {}", path.display(), args.lr).into());
            }
            println!("resuming from {} at step {step}", path.display());
            return Ok(Self { network, optimizer, saved: Some(loader) });
        }
        device.seed(args.seed);
        Ok(Self { network: Network::new(device), optimizer, saved: None })
    }
}

/// Opens the checkpoint folder that the user named, and refuses one that holds another run.
pub fn checkpoints(args: &Args) -> Result<Option<Checkpoints>> {
    let Some(dir) = &args.checkpoint else {
        return Ok(None);
    };
    let checkpoints = Checkpoints::open(dir)?;
    if let (Some((step, path)), false) = (checkpoints.newest()?, args.resume) {
        return Err(format!(
            "{} is a checkpoint of step {step}; go on from it with --resume, or choose another folder",
            path.display()
        )
        .into());
    }
    Ok(Some(checkpoints))
}

/// Trains until `args.steps` steps are done or `stop` is set.
pub fn train(
    mnist: &Mnist,
    args: &Args,
    checkpoints: Option<&Checkpoints>,
    device: &Device,
    stop: &AtomicBool,
) -> Result<Trained> {
    let device = device.clone().autodiff();
    let Start { mut network, mut optimizer, saved } = Start::new(args, checkpoints, &device)?;
    let mut loader = batches::train(mnist, args, saved.as_ref())?;
    let first = loader.step();
    let loss = CrossEntropyLossConfig::new().init(&device);
    let progress = Progress::new(args.steps, first, args.log_every, loader.stats());
    let began = Instant::now();

    while loader.step() < args.steps && !stop.load(Ordering::Relaxed) {
        let step = loader.step();
        let Some(batch) = loader.next() else {
            break;
        };
        let batch = Digits::new(batch?, &device)?;
        let loss = loss.forward(network.forward(batch.images), batch.labels);
        let gradients = GradientsParams::from_grads(loss.backward(), &network);
        network = optimizer.step(learning_rate(args.lr, step), network, gradients);

        progress.step(loader.step(), loss.into_scalar::<f32>(), &loader.stats());
        if let Some(checkpoints) = checkpoints
            && loader.step().is_multiple_of(CHECKPOINT_EVERY)
        {
            checkpoints.save(&network, &optimizer, &loader.state(), args.lr)?;
        }
    }
    progress.finish();
    let stopped = stop.load(Ordering::Relaxed);
    let done = loader.step() - first;
    println!("trained {done} steps in {:.1} s", began.elapsed().as_secs_f64());
    if let Some(checkpoints) = checkpoints {
        let path = checkpoints.save(&network, &optimizer, &loader.state(), args.lr)?;
        println!("saved {}", path.display());
    }
    Ok(Trained { network, stopped })
}

/// Falls to a tenth within 2000 steps. A function of the step alone, so that a resumed run goes on with it whatever
/// `--steps` was before.
fn learning_rate(first: f64, step: u64) -> f64 {
    first * 0.1_f64.powf(step as f64 / 2000.0)
}
