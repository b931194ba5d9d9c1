//! Archives of each kind, and hostile ones.

use std::fs::{self, File};
use std::io::{Seek as _, Write as _};

use symdex_archive::{FaultKind, Limits, Unpacked, Unpacker, spool};
use symdex_testimages::archive::{ZipEntry, gzip, tar_entry, tar_of, zip, zip_of};

const DEBUG: &[u8] = b"debug file";

/// Names and contents of files.
type NamedFiles = Vec<(String, Vec<u8>)>;

/// Unpacks `archive`, which is called `a`. Files that begin with `debug` are wanted. Returns their names and contents,
/// and the faults as text.
fn unpack(archive: &[u8], limits: Limits) -> (NamedFiles, Vec<String>, Unpacked) {
    let mut unpacker = Unpacker::new(limits).expect("a folder");
    let unpacked = unpacker.unpack(file(archive), "a", &|_, head| head.starts_with(b"debug"));
    let read = |file: &symdex_archive::UnpackedFile| fs::read(&file.path).expect("there");
    let files =
        unpacked.files.iter().map(|file| (format!("{}: {}", file.archive, file.entry), read(file))).collect();
    (files, unpacked.faults.iter().map(ToString::to_string).collect(), unpacked)
}

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("written");
    file.rewind().expect("a file");
    file
}

fn names(archive: &[u8]) -> Vec<String> {
    let (files, faults, _) = unpack(archive, Limits::default());
    assert!(faults.is_empty(), "{faults:?}");
    assert!(files.iter().all(|(_, bytes)| bytes == DEBUG));
    files.into_iter().map(|(name, _)| name).collect()
}

/// The only fault of the archive, and the number of files that are unpacked nevertheless.
fn fault(archive: &[u8], limits: Limits) -> (FaultKind, usize) {
    let (files, faults, unpacked) = unpack(archive, limits);
    let [fault] = &unpacked.faults[..] else { panic!("one fault: {faults:?}") };
    (fault.kind.clone(), files.len())
}

#[test]
fn archives_are_told_by_content_and_read_one_level_deep() {
    let files: &[(&str, &[u8])] = &[("x/debug", DEBUG), ("notes.txt", b"notes")];
    let (zipped, tar) = (zip_of(files), tar_of(files));
    let zstd = zstd::encode_all(&tar[..], 3).expect("in memory");
    for archive in [&zipped, &tar, &gzip(&tar), &zstd] {
        assert_eq!(names(archive), ["a: x/debug"]);
        let outer = [("all/inner", &archive[..]), ("debug", DEBUG), ("__MACOSX/._debug", DEBUG)];
        assert_eq!(names(&zip_of(&outer)), ["a: all/inner: x/debug", "a: debug"]);
        assert_eq!(names(&gzip(&tar_of(&outer))), ["a: all/inner: x/debug", "a: debug"]);
    }
    let (files, faults, _) = unpack(&gzip(DEBUG), Limits::default());
    assert_eq!((files, faults), (vec![("a: a".to_owned(), DEBUG.to_vec())], Vec::new()));
}

#[test]
fn zip_entries_of_each_method_are_read_and_others_are_named() {
    // A block of deflate, and of deflate64, whose data is stored.
    let block = [&[1, 10, 0, !10, 0xff], DEBUG].concat();
    let entry = |name: &str, data: Vec<u8>, method| ZipEntry::stored(name, DEBUG).with_data(data, method);
    let zstd = zstd::encode_all(DEBUG, 3).expect("in memory");
    let read = [
        entry("0", DEBUG.to_vec(), 0),
        entry("8", block.clone(), 8),
        entry("9", block, 9),
        entry("93", zstd, 93),
    ];
    assert_eq!(names(&zip(&read)), ["a: 0", "a: 8", "a: 9", "a: 93"]);
    let other = [entry("bz", DEBUG.to_vec(), 12), entry("debug", DEBUG.to_vec(), 0)];
    assert_eq!(fault(&zip(&other), Limits::default()), (FaultKind::Method(12), 1));
    let locked = [ZipEntry { flags: 1, ..ZipEntry::stored("x", DEBUG) }, ZipEntry::stored("debug", DEBUG)];
    assert_eq!(fault(&zip(&locked), Limits::default()), (FaultKind::Encrypted, 1));
}

#[test]
fn names_that_lead_elsewhere_links_and_devices_are_skipped_by_name() {
    let entry = |name, mode| ZipEntry { mode, ..ZipEntry::stored(name, DEBUG) };
    let zipped = zip(&[
        entry("../up", 0o100_644),
        entry("/etc/x", 0o100_644),
        entry("link", 0o120_777),
        entry("dev", 0o020_666),
        entry("debug", 0o100_644),
        entry("debug", 0o100_644),
    ]);
    let tar: Vec<u8> = [
        tar_entry("../up", b'0', DEBUG),
        tar_entry("/etc/x", b'0', DEBUG),
        tar_entry("link", b'2', b""),
        tar_entry("dev", b'3', b""),
        tar_entry("debug", b'0', DEBUG),
        tar_entry("debug", b'0', DEBUG),
    ]
    .concat();
    for archive in [&zipped, &tar] {
        let (files, faults, _) = unpack(archive, Limits::default());
        assert_eq!(files, [("a: debug".to_owned(), DEBUG.to_vec())]);
        let expected = [
            "a: ../up: the entry is skipped: the name has the part \"..\"",
            "a: /etc/x: the entry is skipped: the name is absolute",
            "a: link: the entry is skipped: it is a link, and links in archives are not followed",
            "a: dev: the entry is skipped: it is neither a file nor a folder",
            "a: debug: the entry is skipped: an earlier entry has the same name",
        ];
        assert_eq!(faults, expected);
    }
    let hard = tar_entry("hard", b'1', b"");
    assert_eq!(fault(&hard, Limits::default()), (FaultKind::Link, 0));
}

#[test]
fn an_archive_too_deep_in_others_is_named() {
    let inner = zip_of(&[("debug", DEBUG)]);
    let three = zip_of(&[("two.zip", &zip_of(&[("one.zip", &inner), ("debug", DEBUG)]))]);
    assert_eq!(fault(&three, Limits::default()), (FaultKind::TooDeep { nesting: 1 }, 1));
    let limits = Limits { nesting: 2, ..Limits::default() };
    let (files, faults, _) = unpack(&three, limits);
    assert_eq!((files.len(), faults.len()), (2, 0));
    assert_eq!(files[0].0, "a: two.zip: one.zip: debug");
}

#[test]
fn too_many_entries_end_the_archive_and_keep_those_before() {
    let entries: Vec<_> = (0..20).map(|n| format!("debug{n}")).collect();
    let files: Vec<_> = entries.iter().map(|name| (&**name, DEBUG)).collect();
    let limits = Limits { entries: 5, ..Limits::default() };
    for archive in [zip_of(&files), tar_of(&files)] {
        assert_eq!(fault(&archive, limits), (FaultKind::Entries { limit: 5 }, 5));
    }
    // 60,000 links in a zip archive are one message.
    let link = |n: u32| ZipEntry { mode: 0o120_777, ..ZipEntry::stored(&format!("l{n}"), b"x") };
    let links = zip(&(0..60_000).map(link).collect::<Vec<_>>());
    let (_, faults, _) = unpack(&links, Limits::default());
    assert!(
        faults[0].contains("60000 entries are skipped") && faults[0].ends_with("and 59990 more"),
        "{faults:?}"
    );
}

#[test]
fn a_lying_size_in_the_directory_costs_the_entry() {
    let good = ZipEntry::deflated("debug", DEBUG);
    let bad = ZipEntry { size: 5, ..ZipEntry::deflated("bad", b"debug file that is longer") };
    assert_eq!(fault(&zip(&[bad, good.clone()]), Limits::default()), (FaultKind::LyingSize { stated: 5 }, 1));
    let bad = ZipEntry { size: 50, ..ZipEntry::deflated("bad", DEBUG) };
    let (kind, kept) = fault(&zip(&[bad, good.clone()]), Limits::default());
    assert!(matches!(&kind, FaultKind::Damaged(what) if what.contains("expected 50, got 10")), "{kind}");
    assert_eq!(kept, 1);
    let bad = ZipEntry { crc: 0, ..ZipEntry::deflated("bad", DEBUG) };
    let (kind, kept) = fault(&zip(&[bad, good.clone()]), Limits::default());
    assert!(kind.is_damage() && kept == 1, "{kind}");
    let bad = ZipEntry { compressed_size: 1 << 30, ..ZipEntry::stored("bad", DEBUG) };
    let (files, faults, unpacked) = unpack(&zip(&[bad, good]), Limits::default());
    assert_eq!(
        (files.len(), faults.len()),
        (0, 2),
        "the data of the good entry is inside of the bad one: {faults:?}"
    );
    assert_eq!(unpacked.faults[1].kind, FaultKind::Overlap);
}

#[test]
fn a_truncated_archive_keeps_the_entries_before_the_cut() {
    let noise: Vec<u8> = (0..9999_u32).flat_map(|n| n.wrapping_mul(0x9e37_79b9).to_le_bytes()).collect();
    let tar = tar_of(&[("debug", DEBUG), ("debug2", &[DEBUG, &noise].concat())]);
    let whole = gzip(&tar);
    for cut in [&tar[..tar.len() - 5000], &whole[..whole.len() - 5000]] {
        let (kind, kept) = fault(cut, Limits::default());
        assert!(kind.is_damage() && kept == 1, "{kind}, {kept} kept");
    }
    let zipped = zip_of(&[("debug", DEBUG)]);
    let (kind, _) = fault(&zipped[..zipped.len() - 30], Limits::default());
    assert!(kind.to_string().contains("it has no directory at its end"), "{kind}");
}

#[test]
fn bombs_end_at_the_ratio_and_at_the_size() {
    let zeros = vec![b'd'; 40 << 20];
    let bomb = [&b"debug"[..], &zeros].concat();
    let ratio = FaultKind::Ratio { limit: 200 };
    let zipped = zip_of(&[("bomb", &bomb), ("debug", DEBUG)]);
    assert_eq!(fault(&zipped, Limits::default()), (ratio.clone(), 1));
    let tar = gzip(&tar_of(&[("debug", DEBUG), ("bomb", &bomb)]));
    assert_eq!(fault(&tar, Limits::default()), (ratio.clone(), 1));
    // Entries that nobody wants unpack to as much.
    assert_eq!(fault(&gzip(&tar_of(&[("zeros", &zeros)])), Limits::default()), (ratio, 0));
    let limits = Limits { ratio: u64::MAX, unpacked: 10 << 20, ..Limits::default() };
    assert_eq!(fault(&zipped, limits).0, FaultKind::Unpacked { limit: 10 << 20 });
    let limits = Limits { ratio: u64::MAX, entry_size: 10 << 20, ..Limits::default() };
    assert_eq!(fault(&zipped, limits), (FaultKind::EntrySize { limit: 10 << 20 }, 1));
    assert_eq!(fault(&tar, limits), (FaultKind::EntrySize { limit: 10 << 20 }, 1));
}

#[test]
fn entries_that_share_their_data_are_refused() {
    let first = ZipEntry::deflated("debug", &[DEBUG, &[0; 9999]].concat());
    let again = |n| ZipEntry { name: format!("debug{n}").into_bytes(), offset: Some(0), ..first.clone() };
    let all: Vec<_> = [first.clone()].into_iter().chain((0..1000).map(again)).collect();
    let (files, faults, unpacked) = unpack(&zip(&all), Limits::default());
    assert_eq!(
        (files.len(), unpacked.faults[0].count, &unpacked.faults[0].kind),
        (1, 1000, &FaultKind::Overlap)
    );
    assert_eq!(faults.len(), 1);
}

#[test]
fn empty_entries_do_not_hide_that_data_is_shared() {
    let outer = ZipEntry::stored("debug", &[DEBUG, &[0; 500]].concat());
    let empty =
        ZipEntry { offset: Some(0), compressed_size: 0, size: 0, crc: 0, ..ZipEntry::stored("empty", b"") };
    // This entry and the empty one begin where the data of the first begins.
    let again = ZipEntry { name: b"debug2".to_vec(), offset: Some(0), ..outer.clone() };
    assert_eq!(fault(&zip(&[outer, empty, again]), Limits::default()), (FaultKind::Overlap, 1));
}

#[test]
fn headers_of_a_tar_archive_stay_small() {
    // A GNU long name, which the crate tar reads into memory.
    let name = vec![b'n'; 30 << 20];
    let tar =
        [tar_entry("debug", b'0', DEBUG), tar_entry("././@LongLink", b'L', &name), tar_of(&[("x", DEBUG)])]
            .concat();
    let limits = Limits { ratio: u64::MAX, ..Limits::default() };
    for archive in [&tar, &gzip(&tar)] {
        let (kind, kept) = fault(archive, limits);
        assert!(kind.to_string().contains("headers of more than a megabyte") && kept == 1, "{kind}");
    }
}

#[test]
fn any_cut_and_any_changed_byte_ends_in_files_or_faults() {
    let tar = gzip(&tar_of(&[("debug", DEBUG), ("x", b"x")]));
    for archive in [zip_of(&[("debug", DEBUG), ("x", b"x")]), tar] {
        for at in 0..archive.len() {
            unpack(&archive[..at], Limits::default());
            for bit in [0x01, 0x80, 0xff] {
                let mut changed = archive.clone();
                changed[at] ^= bit;
                let (files, ..) = unpack(&changed, Limits::default());
                assert!(files.len() <= 2);
            }
        }
    }
}

#[test]
fn temporary_files_have_numbers_as_names_and_are_deleted() {
    let mut unpacker = Unpacker::new(Limits::default()).expect("a folder");
    let archive = spool(&zip_of(&[("x/debug", DEBUG), ("y/debug", DEBUG)])[..], 1 << 20).expect("spooled");
    let files = unpacker.unpack(archive, "a", &|_, head| head.starts_with(b"debug")).files;
    let names: Vec<_> = files.iter().map(|file| file.path.file_name().expect("a name")).collect();
    assert_eq!(names, ["0", "1"]);
    assert!(files.iter().all(|file| file.path.is_file() && file.size == DEBUG.len() as u64));
    drop(unpacker);
    assert!(!files[0].path.parent().expect("a folder").exists());
}
