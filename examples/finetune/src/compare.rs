//! Padded, bucketed and budget batches, measured against each other on the same model and texts.

use anyhow::Result;
use clap::ValueEnum;

use crate::batching::Batching;
use crate::{Setup, Sum};

/// The ways take turns, so that a machine that slows down meanwhile slows all of them down.
const ROUNDS: u64 = 4;

/// Runs the same number of steps with each kind of batches and prints a table.
pub fn run(setup: &Setup) -> Result<()> {
    let mut ways = Vec::new();
    for &batching in Batching::value_variants() {
        ways.push((batching, setup.trainer_with(batching)?, Sum::default()));
    }
    for round in 0..ROUNDS {
        let until = setup.args.steps * (round + 1) / ROUNDS;
        for (_, trainer, sum) in &mut ways {
            while trainer.next_step() < until {
                sum.add(&trainer.step()?);
            }
        }
    }
    println!("| batches | real tokens/s | texts/s | padding | s/step | texts/step |");
    println!("|---|---|---|---|---|---|");
    for (batching, _, sum) in &ways {
        println!(
            "| {} | {:.0} | {:.1} | {:.1} % | {:.3} | {:.1} |",
            batching.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned()),
            sum.tokens_per_second(),
            sum.texts_per_second(),
            100.0 * sum.padding(),
            sum.seconds_per_step(),
            sum.texts_per_step()
        );
    }
    Ok(())
}
