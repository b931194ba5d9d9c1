//! The stacks of minidumps. A build without the feature `minidump` refuses minidumps.

#[cfg(feature = "minidump")]
pub(super) use symdex_minidump::{is_process, walk};

#[cfg(not(feature = "minidump"))]
pub(super) use self::refused::{is_process, walk};

/// What `symdex-minidump` has, for files that are refused.
#[cfg(not(feature = "minidump"))]
mod refused {
    use std::fmt;
    use std::io::{self, Write};

    use symdex_report::{Report, Source, Symbolicated};

    use crate::failure::Cause;

    /// Whether `file` is a minidump, judged by its first bytes.
    pub(in super::super) fn is_process(file: &[u8]) -> bool {
        file.starts_with(b"MDMP")
    }

    /// Refuses minidumps. Returns `None` for any other file.
    pub(in super::super) fn walk(file: &[u8], _: &mut dyn Source) -> Option<Result<Walked, Refused>> {
        is_process(file).then_some(Err(Refused))
    }

    /// Why a minidump is refused.
    pub(in super::super) struct Refused;

    impl fmt::Display for Refused {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(
                "a minidump, which this symdex does not read: it was built without the feature `minidump`",
            )
        }
    }

    impl Refused {
        pub(in super::super) fn cause(&self) -> Cause {
            Cause::Unsupported
        }
    }

    /// A process whose stacks are walked. There are none.
    pub(in super::super) struct Walked {
        pub(in super::super) report: Report<'static>,
        pub(in super::super) process: WalkedProcess,
    }

    pub(in super::super) enum WalkedProcess {}

    impl WalkedProcess {
        pub(in super::super) fn write_text(
            &mut self,
            _: &Symbolicated<'_, '_>,
            _: impl Write,
        ) -> io::Result<()> {
            match *self {}
        }

        pub(in super::super) fn write_json(
            &mut self,
            _: &Symbolicated<'_, '_>,
            _: impl Write,
        ) -> io::Result<()> {
            match *self {}
        }
    }
}
