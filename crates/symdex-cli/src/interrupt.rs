//! Signals that end the command. Temporary folders are deleted first.

use std::sync::Once;
use std::sync::mpsc::{self, Sender};
use std::thread;

use symdex_pipeline::archive::TemporaryFolder;

/// Ensures that a signal that ends the command first deletes its temporary folders.
pub(crate) fn delete_temporary_folders() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| {
        let (ready, is_ready) = mpsc::channel();
        // If signals cannot be handled, the next process that makes a temporary folder deletes those of this one.
        if thread::Builder::new().spawn(|| wait_and_delete(ready)).is_ok() {
            let _ = is_ready.recv();
        }
    });
}

#[cfg(unix)]
fn wait_and_delete(ready: Sender<()>) {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    let handled = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| !may_be_ignored(*signal));
    let Ok(mut signals) = Signals::new(handled) else { return };
    drop(ready);
    if let Some(signal) = signals.forever().next() {
        TemporaryFolder::remove_all(|| {
            // The parent process sees that the signal has ended this one.
            let _ = emulate_default_handler(signal);
            std::process::exit(128 + signal);
        });
    }
}

/// Whether the parent process may have set `signal` to be ignored, as nohup does. It then stays ignored.
#[cfg(unix)]
fn may_be_ignored(signal: i32) -> bool {
    use std::io::{IsTerminal as _, stderr, stdin};

    // Linux has a file that states it, with a bit for each signal.
    let status = std::fs::read_to_string("/proc/self/status").ok();
    let ignored = status.as_deref().and_then(|status| {
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
        u64::from_str_radix(mask.trim(), 16).ok()
    });
    match ignored {
        Some(mask) => mask >> (signal - 1) & 1 != 0,
        // Elsewhere, a process that nohup or a script has put into the background has no terminal.
        None => signal != signal_hook::consts::SIGTERM && !(stdin().is_terminal() && stderr().is_terminal()),
    }
}

#[cfg(windows)]
fn wait_and_delete(ready: Sender<()>) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    runtime.block_on(async {
        let Ok(mut pressed) = tokio::signal::windows::ctrl_c() else { return };
        drop(ready);
        if pressed.recv().await.is_some() {
            // The exit code with which Windows ends such a process.
            TemporaryFolder::remove_all(|| std::process::exit(0xc000_013a_u32.cast_signed()));
        }
    });
}

/// Elsewhere, there are no signals.
#[cfg(not(any(unix, windows)))]
fn wait_and_delete(_: Sender<()>) {}
