//! Reads the lines before a stack that describe it.

use memchr::memmem::find;
use symdex::Arch;

use super::info;
use crate::text::lossy;

/// The contents of a line. A log can have a prefix, so the keys are searched in the whole line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Header<'l> {
    /// The name of the next stack.
    Name(&'l [u8]),
    /// The name of the next stack in a dump of Android's runtime. The thread id may follow on another line.
    RuntimeThread(&'l [u8]),
    /// The next stack is the one that crashed.
    Crash,
    /// A tombstone begins.
    TombstoneStart,
    /// The stacks of the threads that did not crash follow.
    OtherThreads,
    /// The finding of a sanitizer. It names the next stack, which is the one that crashed.
    Error(&'l [u8]),
    /// The architecture of the process; `None` if it is unsupported.
    Arch(Option<Arch>),
}

/// Reads `line`. `None` for another kind of line.
pub(super) fn header(line: &[u8]) -> Option<Header<'_>> {
    let after = |what: &[u8]| find(line, what).map(|at| &line[at + what.len()..]);
    if after(b"*** *** ***").is_some() {
        return Some(Header::TombstoneStart);
    }
    if after(b"--- --- ---").is_some() {
        return Some(Header::OtherThreads);
    }
    if let Some(name) = runtime_thread(line) {
        return Some(Header::RuntimeThread(name));
    }
    let name = after(b", name: ").filter(|_| find(line, b"tid: ").is_some());
    if let Some(name) = name.or_else(|| after(b", Name:").filter(|_| find(line, b"Tid:").is_some())) {
        return Some(Header::Name(up_to(name, b"  >>> ").trim_ascii()));
    }
    let is_signal = after(b"signal ").is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_digit));
    if is_signal || after(b"Fault thread ").is_some_and(|rest| rest.eq_ignore_ascii_case(b"info:")) {
        return Some(Header::Crash);
    }
    if let Some(what) = after(b"ERROR: ").filter(|what| find(what, b"Sanitizer: ").is_some()) {
        return Some(Header::Error(up_to(what, b" on ").trim_ascii()));
    }
    if let Some(at) = find(line, b"llocated by thread ").or_else(|| find(line, b"freed by thread ")) {
        let begin = memchr::memrchr(b' ', &line[..at]).map_or(0, |space| space + 1);
        return Some(Header::Name(up_to(&line[begin..], b":")));
    }
    let abi = after(b"ABI: '").map(|rest| up_to(rest, b"'")).or_else(|| after(b"CpuAbi:"))?;
    Some(Header::Arch(arch(abi.trim_ascii())))
}

/// Returns the name of the thread in `"main" prio=5 tid=1 Native`, or in `"binder:1" sysTid=1705`.
fn runtime_thread(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_prefix(b"\"")?;
    let (name, rest) = line.split_at(memchr::memchr(b'"', line)?);
    [&b" prio="[..], b" tid=", b" sysTid="].iter().any(|key| find(rest, key).is_some()).then_some(name)
}

/// A line that states the build id of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StatedId<'l> {
    pub(super) path: &'l [u8],
    /// The position in the file of the mapped bytes, if the line is of a memory map.
    pub(super) offset: Option<u64>,
    /// The digits of the build id.
    pub(super) digits: &'l [u8],
}

/// Returns the path and the digits of the build id in `    /system/lib/libc.so (BuildId: 53a1a7c9...`. Lists of files
/// have such lines, and memory maps, with addresses before the path. `None` for another kind of line.
pub(super) fn build_id(line: &[u8]) -> Option<StatedId<'_>> {
    let (open, after) = (find(line, b" (BuildId: ")?, b" (BuildId: ".len());
    let named = &line[..open];
    let path_at = if named.starts_with(b"/") { 0 } else { find(named, b" /")? + 1 };
    let (before, path) = named.split_at(path_at);
    let id = &line[open + after..];
    let digits = id.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let is_whole = matches!(id.get(digits), Some(b')' | b'.' | b',' | b' '));
    let digits = &id[..digits];
    (!digits.is_empty() && is_whole).then(|| StatedId { path, offset: mapped_offset(before), digits })
}

/// Returns the second last number of `e1f00000-e1f0ffff r-x  1000  10000`, which is the position in the file.
fn mapped_offset(before: &[u8]) -> Option<u64> {
    let mut words = before.rsplit(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let (_size, offset, _access) = (words.next()?, words.next()?, words.next()?);
    u64::from_str_radix(std::str::from_utf8(offset).ok()?, 16).ok()
}

/// Returns the thread id of the next stack. The line with its name states it.
pub(super) fn thread_id(line: &[u8]) -> Option<u64> {
    let keys = [&b"tid: "[..], b"Tid:", b"sysTid="].into_iter();
    let after = keys.filter_map(|key| Some(&line[find(line, key)? + key.len()..])).next()?;
    info::number(&lossy(after.trim_ascii_start()))
}

/// Returns the release of Android, without the part after the point: of `Build fingerprint: 'google/x/x:8.1.0/OPM1...`,
/// or of a title such as `Galaxy S9 (star2lte), Android 8.1`, which Google Play's console has.
pub(super) fn release(line: &[u8]) -> Option<u64> {
    let split = |key: &[u8]| find(line, key).map(|at| (&line[..at], &line[at + key.len()..]));
    if let Some((_, fingerprint)) = split(b"Build fingerprint: ") {
        return info::number(&lossy(&fingerprint[memchr::memchr(b':', fingerprint)? + 1..]));
    }
    let (before, version) = split(b"Android ")?;
    let is_word = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let end = version.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b'.')).unwrap_or(version.len());
    let is_title =
        !is_word(before.trim_ascii_end().last()) && !is_word(version[end..].trim_ascii_start().first());
    info::number(&lossy(version)).filter(|_| is_title)
}

/// Returns `text` up to the first `end`.
fn up_to<'l>(text: &'l [u8], end: &[u8]) -> &'l [u8] {
    find(text, end).map_or(text, |at| &text[..at])
}

/// Returns the architecture for a name that Android and HarmonyOS use.
pub(super) fn arch(abi: &[u8]) -> Option<Arch> {
    let name = match abi {
        b"arm64-v8a" => "arm64",
        b"armeabi-v7a" | b"armeabi" => "arm",
        b"x86" => "i386",
        other => std::str::from_utf8(other).ok()?,
    };
    Arch::from_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_build_ids_are_read() {
        let path = &b"/data/app/a b/libf.so"[..];
        let stated = |offset| Some(StatedId { path, offset, digits: b"0a1b2c" });
        for (line, expected) in [
            ("    /data/app/a b/libf.so (BuildId: 0a1b2c. FileSize: 12)", stated(None)),
            (
                "F/DEBUG ( 1):   e1f00000-e1f0ffff r-x  1f000  10000  /data/app/a b/libf.so (BuildId: 0a1b2c)",
                stated(Some(0x1f000)),
            ),
            ("/data/app/a b/libf.so (BuildId: 0a1b", None),
            ("    libf.so (BuildId: 0a1b2c)", None),
            ("    /data/app/a b/libf.so (deleted)", None),
        ] {
            assert_eq!(build_id(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn releases_of_android_are_read() {
        for (line, expected) in [
            (
                "F DEBUG : Build fingerprint: 'google/x/x:10/QQ3A.200805.001/6578210:user/release-keys'",
                Some(10),
            ),
            ("Build fingerprint: 'samsung/a/b:8.1.0/M1AJQ/1:user/release-keys'", Some(8)),
            ("Build fingerprint: 'Android/aosp_taimen/taimen:R/QT/1:userdebug/test-keys'", None),
            ("Build fingerprint: 'unknown'", None),
            ("samsung Galaxy S9 (star2lte), 4096MB RAM, Android 8.0", Some(8)),
            ("Android 6.0", Some(6)),
            ("Pixel 4 - Android 10 (SDK 29)", Some(10)),
            ("It crashes on Android 10", None),
            ("- Android 10 and later", None),
            ("Android version", None),
        ] {
            assert_eq!(release(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn header_lines_are_read() {
        let name = |text: &'static str| Some(Header::Name(text.as_bytes()));
        let cases = [
            ("F DEBUG   : pid: 7, tid: 9, name: worker 1  >>> com.app <<<", name("worker 1")),
            ("Tid:62538, Name:com.app", name("com.app")),
            ("signal 11 (SIGSEGV), code 1 (SEGV_MAPERR), fault addr 0x4", Some(Header::Crash)),
            ("Fault thread Info:", Some(Header::Crash)),
            ("previously allocated by thread T0 here:", name("allocated by thread T0 here")),
            ("deallocated by thread 12:", name("deallocated by thread 12")),
            ("ABI: 'arm'", Some(Header::Arch(Arch::from_name("arm")))),
            ("CpuAbi:arm64-v8a", Some(Header::Arch(Arch::from_name("arm64")))),
            ("*** *** *** *** *** *** ***", Some(Header::TombstoneStart)),
            ("F DEBUG : --- --- --- --- ---", Some(Header::OtherThreads)),
            ("\"main\" prio=5 tid=1 Native", Some(Header::RuntimeThread(b"main"))),
            ("\"a b\" sysTid=7", Some(Header::RuntimeThread(b"a b"))),
            ("\"a\" b", None),
            ("ABI: 'riscv64'", Some(Header::Arch(Arch::from_name("riscv64")))),
            ("ABI: 'e2k'", Some(Header::Arch(None))),
            ("Cmdline: a signal, no name: none", None),
        ];
        for (line, expected) in cases {
            assert_eq!(header(line.as_bytes()), expected, "{line}");
        }
        let line = b"==12==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000014 at pc 0x55ff9a04b1da";
        assert_eq!(header(line), Some(Header::Error(b"AddressSanitizer: heap-use-after-free")));
    }
}
