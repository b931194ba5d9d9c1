//! Two seccomp filters. The first one kills the process at a system call that no reader of files makes. The second one
//! lets the process make the system calls that it needs; all others fail as if the kernel did not have them, so that
//! the C library falls back to older ones. The kernel applies the stricter answer of the two.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::SeccompCmpArgLen::{Dword, Qword};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, apply_filter,
};

/// Rules by the number of the system call. Without a rule, the call matches whatever its arguments are.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Installs both filters. Returns whether the kernel has accepted them.
pub(super) fn restrict(has_unnamed_files: bool) -> bool {
    let filters = || -> Result<[BpfProgram; 2], Box<dyn std::error::Error>> {
        let kill = SeccompAction::KillProcess;
        let absent = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
        let arch = std::env::consts::ARCH.try_into()?;
        let killed = SeccompFilter::new(killed()?, SeccompAction::Allow, kill, arch)?;
        let allowed = SeccompFilter::new(allowed(has_unnamed_files)?, absent, SeccompAction::Allow, arch)?;
        Ok([killed.try_into()?, allowed.try_into()?])
    };
    let Ok(filters) = filters() else { return false };
    filters.iter().all(|filter| apply_filter(filter).is_ok())
}

/// The system calls that kill the process: network, other programs and processes, and the kernel itself.
fn killed() -> seccompiler::Result<Rules> {
    let calls: &[c_long] = &[
        libc::SYS_accept,
        libc::SYS_accept4,
        libc::SYS_bind,
        libc::SYS_bpf,
        libc::SYS_chroot,
        libc::SYS_connect,
        libc::SYS_delete_module,
        libc::SYS_execve,
        libc::SYS_execveat,
        libc::SYS_finit_module,
        libc::SYS_init_module,
        libc::SYS_io_uring_setup,
        libc::SYS_kexec_load,
        libc::SYS_keyctl,
        libc::SYS_listen,
        libc::SYS_mount,
        libc::SYS_open_by_handle_at,
        libc::SYS_perf_event_open,
        libc::SYS_pivot_root,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_ptrace,
        libc::SYS_reboot,
        libc::SYS_sendmsg,
        libc::SYS_sendto,
        libc::SYS_setns,
        libc::SYS_socket,
        libc::SYS_socketpair,
        libc::SYS_umount2,
        libc::SYS_unshare,
        libc::SYS_userfaultfd,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_fork,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_vfork,
    ];
    let mut rules: Rules = calls.iter().map(|call| (*call, Vec::new())).collect();
    let thread = thread_flag();
    // A new process, as opposed to a thread.
    rules.insert(libc::SYS_clone, vec![rule(0, Qword, SeccompCmpOp::MaskedEq(thread), 0)?]);
    Ok(rules)
}

/// The system calls that reading files, allocating memory, running threads and ending need.
fn allowed(has_unnamed_files: bool) -> seccompiler::Result<Rules> {
    let calls: &[c_long] = &[
        libc::SYS_brk,
        libc::SYS_clock_getres,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_close,
        libc::SYS_dup,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_faccessat,
        libc::SYS_faccessat2,
        libc::SYS_fadvise64,
        libc::SYS_fcntl,
        libc::SYS_fstat,
        libc::SYS_fstatfs,
        libc::SYS_fsync,
        libc::SYS_ftruncate,
        libc::SYS_futex,
        libc::SYS_getcwd,
        libc::SYS_getdents64,
        libc::SYS_getpid,
        libc::SYS_getppid,
        libc::SYS_getrandom,
        libc::SYS_getrusage,
        libc::SYS_gettid,
        libc::SYS_gettimeofday,
        libc::SYS_getuid,
        libc::SYS_lseek,
        libc::SYS_madvise,
        libc::SYS_membarrier,
        libc::SYS_mmap,
        libc::SYS_mprotect,
        libc::SYS_mremap,
        libc::SYS_munmap,
        libc::SYS_nanosleep,
        libc::SYS_newfstatat,
        libc::SYS_ppoll,
        libc::SYS_pread64,
        libc::SYS_pwrite64,
        libc::SYS_read,
        libc::SYS_readlinkat,
        libc::SYS_readv,
        libc::SYS_restart_syscall,
        libc::SYS_rseq,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sched_getaffinity,
        libc::SYS_sched_yield,
        libc::SYS_set_robust_list,
        libc::SYS_sigaltstack,
        libc::SYS_statfs,
        libc::SYS_statx,
        libc::SYS_uname,
        libc::SYS_write,
        libc::SYS_writev,
        // For the second filter, which is installed with one of these.
        libc::SYS_seccomp,
        libc::SYS_prctl,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_access,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_arch_prctl,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_lstat,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_readlink,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_stat,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_time,
    ];
    let mut rules: Rules = calls.iter().map(|call| (*call, Vec::new())).collect();
    let thread = thread_flag();
    rules.insert(libc::SYS_clone, vec![rule(0, Qword, SeccompCmpOp::MaskedEq(thread), thread)?]);
    // An abort raises a signal in this process. Only this process can be limited further.
    let own = u64::from(std::process::id());
    rules.insert(libc::SYS_tgkill, vec![rule(0, Dword, SeccompCmpOp::Eq, own)?]);
    rules.insert(libc::SYS_prlimit64, vec![rule(0, Dword, SeccompCmpOp::Eq, 0)?]);
    rules.insert(libc::SYS_openat, opened(2, has_unnamed_files)?);
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_open, opened(1, has_unnamed_files)?);
    if !has_unnamed_files {
        // A temporary file has a name for a moment. Landlock restricts names to the folder of temporary files.
        rules.insert(libc::SYS_unlinkat, Vec::new());
        #[cfg(target_arch = "x86_64")]
        rules.insert(libc::SYS_unlink, Vec::new());
    }
    Ok(rules)
}

/// Rules for the flags of `open`, the argument number `flags`: files are opened to be read, and files without a name to
/// be written. Without such files, all flags are allowed.
fn opened(flags: u8, has_unnamed_files: bool) -> seccompiler::Result<Vec<SeccompRule>> {
    if !has_unnamed_files {
        return Ok(Vec::new());
    }
    let [access, changes, unnamed] = [libc::O_ACCMODE, libc::O_CREAT | libc::O_TRUNC, libc::O_TMPFILE]
        .map(|bits| u64::from(bits.unsigned_abs()));
    let reads = rule(
        flags,
        Dword,
        SeccompCmpOp::MaskedEq(access | changes),
        u64::from(libc::O_RDONLY.unsigned_abs()),
    )?;
    let makes = rule(flags, Dword, SeccompCmpOp::MaskedEq(unnamed), unnamed)?;
    Ok(vec![reads, makes])
}

fn thread_flag() -> u64 {
    u64::from(libc::CLONE_THREAD.unsigned_abs())
}

/// A rule for one argument.
fn rule(
    argument: u8,
    length: seccompiler::SeccompCmpArgLen,
    operator: SeccompCmpOp,
    value: u64,
) -> seccompiler::Result<SeccompRule> {
    let condition = SeccompCondition::new(argument, length, operator, value)?;
    Ok(SeccompRule::new(vec![condition])?)
}
