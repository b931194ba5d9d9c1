//! The address that is looked up for a frame: that of a call is before its return address.

use symdex::Arch;

/// `CPU_TYPE_ARM` and its 64-bit variants, of `mach/machine.h`.
const ARM: u32 = 12;
const ARM64: u32 = 0x0100_000c;
const ARM64_32: u32 = 0x0200_000c;

/// The signals after which a handler may have taken the innermost frame away: SIGILL, SIGBUS and SIGSEGV of Apple's
/// systems.
const CRASH_SIGNALS: [u32; 3] = [4, 10, 11];

/// Whether the address of a frame is a return address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Adjust {
    Yes,
    No,
    /// It is one, except in the first frame.
    Auto,
}

impl Adjust {
    /// `stated` is what the frame states, and `is_stated` whether a frame of the stack trace states it.
    pub(super) fn of(stated: Option<bool>, is_stated: bool) -> Self {
        match stated {
            Some(true) => Self::Yes,
            Some(false) => Self::No,
            None if is_stated => Self::Yes,
            None => Self::Auto,
        }
    }
}

/// What a stack trace states about its first frame.
#[derive(Clone, Copy)]
pub(super) struct FirstFrame {
    pub(super) signal: Option<u32>,
    /// The instruction pointer.
    pub(super) pc: Option<u64>,
}

/// The address to look up for a frame with `address`. `first` is there for the first frame of a stack trace. `None` if
/// it is before address 0.
pub(super) fn call_site(
    address: u64,
    arch: Option<&Arch>,
    adjust: Adjust,
    first: Option<FirstFrame>,
) -> Option<u64> {
    let size = arch.and_then(instruction_size);
    let aligned = address - address % size.unwrap_or(1);
    let is_return = match adjust {
        Adjust::Yes => true,
        Adjust::No => false,
        // If the instruction pointer is elsewhere, a signal handler was in front, and this is its caller.
        Adjust::Auto => first.is_none_or(|FirstFrame { signal, pc }| {
            let is_crash = signal.is_some_and(|signal| CRASH_SIGNALS.contains(&signal));
            is_crash && pc.is_some_and(|pc| pc != address)
        }),
    };
    if is_return { aligned.checked_sub(size.unwrap_or(1)) } else { Some(aligned) }
}

/// The size of an instruction, at the start of which addresses are aligned. `None` if instructions have several sizes
/// and no alignment.
fn instruction_size(arch: &Arch) -> Option<u64> {
    match arch.cputype {
        ARM => Some(2),
        ARM64 | ARM64_32 => Some(4),
        _ => None,
    }
}

/// The name of the instruction pointer in the registers of a request.
pub(super) fn pc_register(arch: &Arch) -> &'static str {
    match arch.name.as_str() {
        "i386" => "eip",
        name if name.starts_with("x86_64") => "rip",
        _ => "pc",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_before_its_return_address() {
        let arch = |name| Arch::from_name(name).expect("an architecture");
        let [arm64, armv7, x86_64] = ["arm64", "armv7", "x86_64"].map(arch);
        let callers = |arch| call_site(0x1337, Some(arch), Adjust::Auto, None);
        assert_eq!((callers(&arm64), callers(&armv7)), (Some(0x1330), Some(0x1334)));
        assert_eq!(
            (callers(&x86_64), call_site(0x1337, None, Adjust::Yes, None)),
            (Some(0x1336), Some(0x1336))
        );
        assert_eq!(call_site(3, Some(&arm64), Adjust::Yes, None), None);
    }

    #[test]
    fn the_first_frame_is_where_the_instruction_pointer_is() {
        let arm64 = Arch::from_name("arm64").expect("an architecture");
        let first =
            |signal, pc| call_site(0x1338, Some(&arm64), Adjust::Auto, Some(FirstFrame { signal, pc }));
        assert_eq!(first(None, None), Some(0x1338));
        assert_eq!(first(Some(11), Some(0x1338)), Some(0x1338));
        assert_eq!(first(Some(11), None), Some(0x1338));
        assert_eq!(first(Some(6), Some(0x4242)), Some(0x1338));
        assert_eq!(first(Some(11), Some(0x4242)), Some(0x1334));
    }

    #[test]
    fn a_stated_frame_changes_the_others_of_its_stack_trace() {
        assert_eq!(Adjust::of(Some(true), true), Adjust::Yes);
        assert_eq!(Adjust::of(Some(false), true), Adjust::No);
        assert_eq!((Adjust::of(None, true), Adjust::of(None, false)), (Adjust::Yes, Adjust::Auto));
    }
}
