//! The program `finetune`; `--help` says what it does.
#![forbid(unsafe_code)]

use clap::Parser;

fn main() -> anyhow::Result<()> {
    finetune::run(finetune::args::Args::parse())
}
