//! `symdex symbolicate` with stacks of several releases of Android, of a library whose code has other positions in the
//! file than addresses.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{CommandOutput, folder, symdex, symdex_on, testdata};

const ID: &str = "318e3a4a9b7cb3461e8534a38e7dc66e825362ea";

/// The executable segment of `testdata/elf/gcc-parts.so` has this address, and as position in the file.
const ADDRESS: u64 = 0x1000;

/// A copy of the library whose program header states another position.
fn library(root: &Path, file_offset: u64) -> PathBuf {
    let mut bytes = fs::read(testdata().join("elf/gcc-parts.so")).expect("readable");
    let headers = bytes.windows(16).enumerate().skip(64).step_by(56);
    let is_code =
        |header: &[u8]| header[..8] == [1, 0, 0, 0, 5, 0, 0, 0] && header[8..] == ADDRESS.to_le_bytes();
    let at = headers.into_iter().find_map(|(at, header)| is_code(header).then_some(at)).expect("a segment");
    bytes[at + 8..at + 16].copy_from_slice(&file_offset.to_le_bytes());
    let path = root.join("libparts.so");
    fs::write(&path, bytes).expect("written");
    path
}

fn tombstone(release: Option<&str>, frame: &str) -> String {
    let fingerprint =
        release.map(|release| format!("Build fingerprint: 'a/b/c:{release}/AB1/7:user/keys'\n"));
    format!(
        "*** *** *** *** *** *** *** ***\n{}ABI: 'x86_64'\npid: 1, tid: 1, name: a  >>> a <<<\nbacktrace:\n      \
         #00 pc {frame}\n",
        fingerprint.unwrap_or_default()
    )
}

/// What the library at `path` answers: from its index, and directly. Both are equal.
fn answer(root: &Path, path: &Path, release: Option<&str>, frame: &str) -> CommandOutput {
    let [report, index] = ["report", "index"].map(|name| root.join(name));
    fs::write(&report, tombstone(release, frame)).expect("written");
    symdex(["build".as_ref(), path.as_os_str(), "-o".as_ref(), index.as_os_str()]).ok();
    let asked = |option: &str, place: &Path| {
        symdex(["symbolicate".as_ref(), report.as_os_str(), option.as_ref(), place.as_os_str()])
    };
    let [from_index, direct] = [asked("--index", &index), asked("--dsym", path)];
    assert_eq!((from_index.code, &from_index.out), (direct.code, &direct.out), "{}", direct.err);
    from_index
}

#[test]
fn positions_in_the_file_and_in_the_mapping_become_addresses() {
    let root = folder();
    let path = library(root.path(), 0x3980);
    let with_id = format!("/data/app/libparts.so (BuildId: {ID})");
    let mapped = format!("/data/app/libparts.so (offset 0x3000) (BuildId: {ID})");
    // `reload` + 9 in each of them, and 0x139 in the segment.
    for (release, frame) in [
        (Some("14"), format!("0000000000001139  {with_id}")),
        (Some("10"), format!("0000000000003ab9  {with_id}")),
        (Some("9"), format!("0000000000003ab9  {mapped}")),
        (Some("8.1.0"), format!("0000000000000ab9  {mapped}")),
        // No other reading lies in the code.
        (None, format!("0000000000001139  {with_id}")),
        (None, format!("0000000000003ab9  {with_id}")),
    ] {
        let done = answer(root.path(), &path, release, &frame);
        assert_eq!(done.code, Some(0), "{}", done.err);
        assert!(done.out.contains("(reload+9)") && done.out.contains("parts.c:8 (reload)"), "{}", done.out);
    }
    let index = root.path().join(format!("index/{ID}.symdex"));
    let overview = symdex_on(&index, "inspect {}").ok();
    assert!(overview.contains("segment       0x1000..0x1210 at 0x3980 of the file\n"), "{overview}");
    let json = &symdex_on(&index, "inspect {} --json").json()[0];
    assert_eq!(json["segments"], serde_json::json!([["0x3980", "0x1000", "0x210"]]));
}

#[test]
fn an_address_with_two_answers_is_ambiguous_without_the_release() {
    let root = folder();
    let path = library(root.path(), 0x1080);
    let frame = format!("0000000000001139  /data/app/libparts.so (BuildId: {ID})");
    let done = answer(root.path(), &path, None, &frame);
    assert_eq!((done.code, done.out), (Some(3), tombstone(None, &frame)), "{}", done.err);
    for part in ["does not state Android's release", "reload (parts.c:8) or twice (parts.h:6)"] {
        assert!(done.err.contains(part), "{part:?} in {}", done.err);
    }
    let done = answer(root.path(), &path, Some("10"), &frame);
    assert!(done.out.contains("rescale"), "{}", done.out);
}
