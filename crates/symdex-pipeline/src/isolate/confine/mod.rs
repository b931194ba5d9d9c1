//! A process limits itself.

#[cfg(target_os = "linux")]
mod files;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
mod system_calls;
#[cfg(unix)]
mod unix;

use std::io;

use serde::{Deserialize, Serialize};

use crate::isolate::limits::{Access, Limits};

/// Which limits are in force in a child.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protections {
    /// In words, for people: `memory`, `CPU time`, `Landlock`, `seccomp`, ...
    pub in_force: Vec<String>,
    /// Those that this system lacks or refuses.
    pub missing: Vec<String>,
}

impl Protections {
    fn add(&mut self, name: &str, is_in_force: bool) {
        let names = if is_in_force { &mut self.in_force } else { &mut self.missing };
        names.push(name.to_owned());
    }
}

/// Limits this process, for the rest of its life: memory, CPU time, size and number of files, no core files; on Linux
/// also which files it may open, and which system calls it may make.
///
/// The process must have only one thread. On Linux, threads that exist already would keep their rights.
///
/// # Errors
///
/// [`io::Error`] if a limit of a resource cannot be set. A kernel without Landlock or seccomp is not an error; the
/// result says so.
pub(crate) fn confine(limits: &Limits, access: &Access) -> io::Result<Protections> {
    let mut protections = Protections::default();
    #[cfg(unix)]
    unix::limit(limits, &mut protections)?;
    #[cfg(target_os = "linux")]
    {
        let has_unnamed_files =
            access.temporary.as_ref().is_none_or(|folder| files::has_unnamed_files(folder));
        // A process that may gain privileges could leave its limits by starting a program. Both filters need this too.
        rustix::thread::set_no_new_privs(true)?;
        protections.add("no new privileges", true);
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        let has_landlock = files::restrict(access, has_unnamed_files);
        protections.add("Landlock", has_landlock);
        protections.add("seccomp", restrict_system_calls(has_unnamed_files));
    }
    #[cfg(not(target_os = "linux"))]
    let _ = access;
    #[cfg(windows)]
    {
        let _ = limits;
        // The parent has put this process into it.
        protections.add("job object", true);
    }
    Ok(protections)
}

/// Installs the filters of system calls. Returns whether they are in force.
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
fn restrict_system_calls(has_unnamed_files: bool) -> bool {
    system_calls::restrict(has_unnamed_files)
}

/// There are no filters for this architecture.
#[cfg(all(
    target_os = "linux",
    not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))
))]
fn restrict_system_calls(_: bool) -> bool {
    false
}

/// Grants this process the CPU time of another result.
pub(crate) fn renew_cpu_time(limits: &Limits) -> io::Result<()> {
    #[cfg(unix)]
    unix::renew_cpu_time(limits)?;
    #[cfg(not(unix))]
    let _ = limits;
    Ok(())
}
