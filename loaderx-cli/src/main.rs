//! The program `loaderx`: data in, a look at it, checks, rewriting, data out, without writing Rust.
//!
//! Each subcommand is a file in `commands`: its arguments and what it does. What they share is here beside it.
#![forbid(unsafe_code)]

mod bytes;
mod cold;
mod commands;
mod output;
mod pictures;
mod progress;
mod target;
mod values;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use output::Output;

/// Record stores for training: import, look, check, rewrite, export.
#[derive(Debug, Parser)]
#[command(
    name = "loaderx",
    version,
    max_term_width = 100,
    after_help = "Examples:\n  loaderx import train-images-idx3-ubyte.gz train/image\n  loaderx info train\n  \
                  loaderx head train/image\n  loaderx verify train\n  loaderx export train train.parquet\n\n\
                  Exit codes:\n  0  done; nothing wrong was found\n  1  a check found faults\n  2  it could not be \
                  done, or was called wrongly\n  130  ended with Ctrl-C: nothing half-made is left, and the next compact goes on"
)]
pub(crate) struct Cli {
    /// Print results as JSON.
    #[arg(long, global = true)]
    json: bool,

    /// Show no progress.
    #[arg(long, short, global = true)]
    quiet: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Import(commands::import::Args),
    Info(commands::info::Args),
    Head(commands::cat::HeadArgs),
    Cat(commands::cat::CatArgs),
    Verify(commands::verify::Args),
    Repair(commands::repair::Args),
    Delete(commands::delete::Args),
    Compact(commands::compact::Args),
    TrainDict(commands::train_dict::Args),
    Recode(commands::recode::Args),
    Merge(commands::merge::Args),
    Split(commands::split::Args),
    Export(commands::export::Args),
    Bench(commands::bench::Args),
    Completions(commands::generate::CompletionArgs),
    Man(commands::generate::ManArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let output = Output::new(cli.json, cli.quiet);
    progress::catch_interrupts();
    let result = match &cli.command {
        Command::Import(args) => args.run(&output),
        Command::Info(args) => args.run(&output),
        Command::Head(args) => args.run(&output),
        Command::Cat(args) => args.run(&output),
        Command::Verify(args) => args.run(&output),
        Command::Repair(args) => args.run(&output),
        Command::Delete(args) => args.run(&output),
        Command::Compact(args) => args.run(&output),
        Command::TrainDict(args) => args.run(&output),
        Command::Recode(args) => args.run(&output),
        Command::Merge(args) => args.run(&output),
        Command::Split(args) => args.run(&output),
        Command::Export(args) => args.run(&output),
        Command::Bench(args) => args.run(&output),
        Command::Completions(args) => args.run(&output),
        Command::Man(args) => args.run(&output),
    };
    match result {
        Ok(code) => code,
        Err(failure) => output.fail(&failure),
    }
}
