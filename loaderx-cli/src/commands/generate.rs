use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::Cli;
use crate::output::{Outcome, Output};

/// Print a completion script for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  source <(loaderx completions bash)       # for this shell
  loaderx completions zsh > _loaderx       # to be moved to a folder of $fpath")]
pub(crate) struct CompletionArgs {
    /// The shell.
    shell: Shell,
}

impl CompletionArgs {
    pub(crate) fn run(&self, output: &Output) -> Outcome {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "loaderx", &mut script);
        output.raw(&script)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Print the manual page, of the program or of one subcommand.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  loaderx man > loaderx.1\n  loaderx man import > loaderx-import.1")]
pub(crate) struct ManArgs {
    /// The subcommand.
    subcommand: Option<String>,
}

impl ManArgs {
    pub(crate) fn run(&self, output: &Output) -> Outcome {
        let mut command = Cli::command();
        command.build();
        if let Some(name) = &self.subcommand {
            command = command.find_subcommand(name).cloned().ok_or_else(|| {
                loaderx_core::Error::invalid(format!("there is no subcommand {name:?}"))
                    .with_hint("`loaderx --help` lists them")
            })?;
        }
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        output.raw(&page)?;
        Ok(ExitCode::SUCCESS)
    }
}
