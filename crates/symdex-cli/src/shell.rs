//! `symdex completions` and `symdex man`: what a package installs beside the command.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Command;
use clap_complete::Shell;

use crate::failure::{Cause, CommandResult, Failure};

/// Print a script that completes options and file names of symdex in a shell
///
/// The packages for Debian and Fedora install the scripts. Otherwise, put the script where the shell looks for it.
#[derive(clap::Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  symdex completions bash > ~/.local/share/bash-completion/completions/symdex
  symdex completions zsh > ~/.zfunc/_symdex         with fpath+=~/.zfunc before compinit in ~/.zshrc
  symdex completions fish > ~/.config/fish/completions/symdex.fish
  symdex completions powershell >> $PROFILE";

/// Write the man pages of symdex, one for each command, to a folder
#[derive(clap::Args)]
#[command(after_help = MAN_EXAMPLES)]
pub(crate) struct ManArgs {
    /// The folder. It is created if it does not exist
    folder: PathBuf,
}

const MAN_EXAMPLES: &str = "\
Examples:
  symdex man ~/.local/share/man/man1
  man symdex-build";

/// Prints the completions of `command` for a shell.
pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "symdex", &mut script);
    io::stdout().write_all(&script)?;
    Ok(None)
}

/// Writes the man pages of `command` and its subcommands.
pub(crate) fn man(args: &ManArgs, command: Command) -> CommandResult {
    let folder = &args.folder;
    fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command, folder)).map_err(|error| {
        Failure::new(Cause::Other, format!("cannot write man pages to {}: {error}", folder.display()))
    })?;
    Ok(None)
}
