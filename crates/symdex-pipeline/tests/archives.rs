//! Archives of each kind, and hostile ones.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{Seek as _, Write as _};

use symdex_pipeline::DiskSpace;
use symdex_pipeline::archive::{FaultKind, Limits, Unpacked, Unpacker};
use symdex_testkit::images::archive::{ZipEntry, gzip, tar_entry, tar_of, zip, zip_of};

const DEBUG: &[u8] = b"debug file";

/// Names and contents of files.
type NamedFiles = Vec<(String, Vec<u8>)>;

/// Unpacks `archive`, which is called `a`. Files that begin with `debug` are wanted. Returns their names and contents,
/// and the faults as text.
fn unpack(archive: &[u8], limits: Limits) -> (NamedFiles, Vec<String>, Unpacked) {
    let mut unpacker = Unpacker::new(limits).expect("a folder");
    let unpacked = unpacker.unpack(file(archive), "a", &|_, head| head.starts_with(b"debug"), &|_| Ok(()));
    let read = |file: &symdex_pipeline::archive::UnpackedFile| fs::read(&file.path).expect("there");
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
    assert!(kind.cause().is_damage() && kept == 1, "{kind}");
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
fn a_truncated_archive_keeps_the_entries_before_the_cut_if_it_is_not_compressed() {
    let noise: Vec<u8> = (0..9999_u32).flat_map(|n| n.wrapping_mul(0x9e37_79b9).to_le_bytes()).collect();
    let tar = tar_of(&[("debug", DEBUG), ("debug2", &[DEBUG, &noise].concat())]);
    let whole = gzip(&tar);
    for (cut, expected) in [(&tar[..tar.len() - 5000], 1), (&whole[..whole.len() - 5000], 0)] {
        let (kind, kept) = fault(cut, Limits::default());
        assert!(kind.cause().is_damage() && kept == expected, "{kind}, {kept} kept");
    }
    let zipped = zip_of(&[("debug", DEBUG)]);
    let (kind, _) = fault(&zipped[..zipped.len() - 30], Limits::default());
    assert!(kind.to_string().contains("it has no directory at its end"), "{kind}");
}

/// A zstd stream of one frame with a checksum.
fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).expect("in memory");
    encoder.include_checksum(true).expect("known");
    encoder.write_all(bytes).expect("in memory");
    encoder.finish().expect("in memory")
}

#[test]
fn a_damaged_stream_yields_no_file_wherever_the_damage_is() {
    let tar = tar_of(&[("debug", DEBUG), ("inner.zip", &zip_of(&[("debug", DEBUG)]))]);
    // A program that writes tar archives fills the last 10 kB with zeros.
    let padded = [&tar[..], &[0; 9000]].concat();
    for (stream, checksum) in [(gzip(&tar), 8), (gzip(&padded), 8), (zstd(&tar), 4), (zstd(&padded), 4)] {
        assert_eq!(names(&stream), ["a: debug", "a: inner.zip: debug"]);
        let mut wrong = stream.clone();
        let at = wrong.len() - checksum;
        wrong[at] ^= 0x10;
        let second = [&stream[..], &wrong].concat();
        let garbage = [&stream[..], b"garbage"].concat();
        for damaged in [&wrong, &second, &garbage, &stream[..stream.len() - 1].to_vec()] {
            let (kind, kept) = fault(damaged, Limits::default());
            assert!(kind.cause().is_damage() && kept == 0, "{kind}, {kept} kept");
            // In another archive, other files stay.
            let outer = zip_of(&[("debug", DEBUG), ("all.tar", damaged)]);
            let (kind, kept) = fault(&outer, Limits { nesting: 2, ..Limits::default() });
            assert!(kind.cause().is_damage() && kept == 1, "{kind}, {kept} kept");
            assert!(kind.to_string().ends_with("; none of its files is used"), "{kind}");
        }
        // Another stream after the end of the archive is read and ignored, as by GNU tar.
        assert_eq!(names(&[&stream[..], &stream].concat()), ["a: debug", "a: inner.zip: debug"]);
    }
}

#[test]
fn data_after_the_end_of_the_archive_has_limits() {
    let tar = [tar_of(&[("debug", DEBUG)]), vec![0; 40 << 20]].concat();
    assert_eq!(fault(&gzip(&tar), Limits::default()), (FaultKind::Ratio { limit: 200 }, 0));
}

#[test]
fn a_small_file_that_is_damaged_is_named_in_an_archive_too() {
    let mut damaged = gzip(DEBUG);
    let at = damaged.len() - 8;
    damaged[at] ^= 1;
    for archive in [damaged.clone(), tar_of(&[("debug.gz", &damaged)])] {
        let (kind, kept) = fault(&archive, Limits::default());
        assert!(kind.cause().is_damage() && kept == 0, "{kind}, {kept} kept");
    }
    // A file of an app that only begins like a compressed one.
    assert_eq!(names(&tar_of(&[("x", b"\x1f\x8b\x08\0garbage"), ("debug", DEBUG)])), ["a: debug"]);
}

/// GNU tar 1.34 made these archives of a file with 31 regions and a small file, with `--sparse --hole-detection=raw`
/// and `--format=gnu` or `--sparse-version=0.0`, `0.1` and `1.0`.
#[test]
fn sparse_files_have_their_holes() {
    let mut expected = vec![0; 30 * 8192];
    for (number, region) in (1..).zip(expected.chunks_mut(8192)) {
        region[..4096].fill(number);
    }
    expected[..5].copy_from_slice(b"debug");
    expected.extend(b"end".repeat(33));
    for format in ["gnu", "pax-0.0", "pax-0.1", "pax-1.0"] {
        let path = format!("{}/testdata/sparse-{format}.tar.gz", env!("CARGO_MANIFEST_DIR"));
        let archive = fs::read(path).expect("there");
        let (files, faults, _) = unpack(&archive, Limits::default());
        assert_eq!(faults, [""; 0], "{format}");
        let [(sparse, contents), small] = &files[..] else { panic!("{format}: two files") };
        assert_eq!((&**sparse, &*small.0, &small.1[..]), ("a: sparse", "a: debug", DEBUG), "{format}");
        assert!(*contents == expected, "{format}");
    }
}

/// A sparse entry of `size` bytes. Each of its regions has an offset and data.
fn sparse_entry(name: &str, size: u64, regions: &[(u64, &[u8])]) -> Vec<u8> {
    let size = format!("realsize={size}");
    let records = ["major=1", "minor=0", &format!("name={name}"), &size].map(|record| {
        let record = format!(" GNU.sparse.{record}\n");
        format!("{}{record}", record.len() + 2)
    });
    let mut data = format!("{}\n", regions.len()).into_bytes();
    regions.iter().for_each(|(offset, bytes)| data.extend(format!("{offset}\n{}\n", bytes.len()).bytes()));
    data.resize(512, 0);
    regions.iter().for_each(|(_, bytes)| data.extend(*bytes));
    [tar_entry("x", b'x', records.concat().as_bytes()), tar_entry("x", b'0', &data)].concat()
}

#[test]
fn sparse_files_that_grow_far_beyond_the_archive_are_skipped_by_name() {
    let sparse = |name, size| sparse_entry(name, size, &[(0, DEBUG)]);
    let head = [DEBUG, &[0; 502]].concat();
    // The data after the hole may pay for it, as long as nobody has read it.
    let late = sparse_entry("late", 101_000_000, &[(0, &head), (100_000_000, &[b'd'; 1_000_000])]);
    let zeros = vec![0; 15 << 20];
    for wrap in [|tar: Vec<u8>| tar, |tar: Vec<u8>| gzip(&tar)] {
        let tar = [
            tar_entry("debug", b'0', DEBUG),
            sparse("bomb", 100_000_000),
            sparse("bomb2", 15_000_000_000),
            sparse("small", 1 << 20),
            // Entries that nobody wants are not read.
            sparse_entry("disk", 15_000_000_000, &[(0, b"other")]),
            late.clone(),
            // The free bytes of the stream are left.
            tar_entry("zeros", b'0', &zeros),
            tar_of(&[("last", DEBUG)]),
        ];
        let (files, _, unpacked) = unpack(&wrap(tar.concat()), Limits::default());
        let sizes: Vec<_> = files.iter().map(|(name, bytes)| (&**name, bytes.len())).collect();
        assert_eq!(sizes, [("a: debug", 10), ("a: small", 1 << 20), ("a: last", 10)]);
        let [fault] = &unpacked.faults[..] else { panic!("one fault: {:?}", unpacked.faults) };
        assert_eq!(fault.kind, FaultKind::Holes { limit: 200 });
        assert_eq!(fault.names, ["bomb", "bomb2", "late"]);
    }
    let (kind, _) = fault(&sparse("debug", 5), Limits::default());
    assert!(kind.to_string().contains("do not fit"), "{kind}");
}

#[test]
fn refused_holes_are_not_written() {
    // 10 MB of holes each: the first fits the free bytes, and the second does not.
    let sparse = |name| sparse_entry(name, 10_000_000, &[(0, DEBUG)]);
    let tar = [sparse("one"), sparse("two"), tar_of(&[("debug", DEBUG)])].concat();
    assert_eq!(fault(&tar, Limits::default()), (FaultKind::Holes { limit: 200 }, 2));
    // All that is written counts for the size of the archive.
    let limits = Limits { unpacked: 10_100_000, ..Limits::default() };
    assert_eq!(fault(&tar, limits), (FaultKind::Holes { limit: 200 }, 2));
    let limits = Limits { unpacked: 9_000_000, ..Limits::default() };
    assert_eq!(fault(&tar, limits), (FaultKind::Unpacked { limit: 9_000_000 }, 0));
}

#[test]
fn sparse_files_with_much_data_between_their_holes_are_read() {
    let noise: Vec<u8> = (0..100_000_u32).flat_map(|n| n.wrapping_mul(0x9e37_79b9).to_le_bytes()).collect();
    let data = [DEBUG, &noise[10..]].concat();
    let tar = sparse_entry("debug", 70_000_000, &[(0, &data[..390_144]), (60_000_000, &data)]);
    for archive in [&tar, &gzip(&tar)] {
        let (files, faults, _) = unpack(archive, Limits::default());
        assert_eq!((files.len(), faults), (1, Vec::new()));
        assert!(files[0].1.len() == 70_000_000 && files[0].1[60_000_000..].starts_with(&data));
    }
}

#[test]
fn checksums_of_headers_may_be_of_signed_bytes() {
    let mut tar = tar_of(&[("debug\u{e9}", DEBUG)]);
    assert_eq!(names(&tar), ["a: debug\u{e9}"]);
    let sum: i32 = tar[..512]
        .iter()
        .enumerate()
        .map(|(at, byte)| match at {
            148..156 => i32::from(b' '),
            _ => i32::from(byte.cast_signed()),
        })
        .sum();
    tar[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    assert_eq!(names(&tar), ["a: debug\u{e9}"]);
    tar[0] ^= 1;
    let (kind, _) = fault(&tar, Limits::default());
    assert!(kind.to_string().contains("checksum of a header"), "{kind}");
}

#[test]
fn long_names_and_pax_paths_replace_those_of_the_header() {
    let long = "folder/".repeat(30) + "debug";
    let record = format!("{} path={long}\n", long.len() + 10);
    let tar = [
        tar_entry("././@LongLink", b'L', format!("{long}1\0").as_bytes()),
        tar_entry("cut", b'0', DEBUG),
        tar_entry("PaxHeaders", b'x', record.as_bytes()),
        tar_entry("cut", b'0', DEBUG),
        tar_entry("folder/", b'0', b""),
        tar_of(&[]),
    ]
    .concat();
    assert_eq!(names(&tar), [format!("a: {long}1"), format!("a: {long}")]);
}

#[test]
fn what_is_read_of_an_archive_is_told_as_it_is_read() {
    let noise: Vec<u8> = (0..99_999_u32).flat_map(|n| n.wrapping_mul(0x9e37_79b9).to_le_bytes()).collect();
    let debug = [DEBUG, &noise].concat();
    let files: &[(&str, &[u8])] = &[("debug", &debug), ("debug2", DEBUG)];
    for archive in [zip_of(files), tar_of(files), gzip(&tar_of(files))] {
        let (read, calls) = (Cell::new(0), Cell::new(0));
        let mut unpacker = Unpacker::new(Limits::default()).expect("a folder");
        let on_read = |bytes| {
            read.set(read.get() + bytes);
            calls.set(calls.get() + 1);
            Ok(())
        };
        unpacker.unpack(file(&archive), "a", &|_, head| head.starts_with(b"debug"), &on_read);
        let size = archive.len() as u64;
        assert!((size - 2000..=size).contains(&read.get()) && calls.get() > 5, "{} of {size}", read.get());
    }
}

#[test]
fn bombs_end_at_the_ratio_and_at_the_size() {
    let zeros = vec![b'd'; 40 << 20];
    let bomb = [&b"debug"[..], &zeros].concat();
    let ratio = FaultKind::Ratio { limit: 200 };
    let zipped = zip_of(&[("bomb", &bomb), ("debug", DEBUG)]);
    assert_eq!(fault(&zipped, Limits::default()), (ratio.clone(), 1));
    let tar = gzip(&tar_of(&[("debug", DEBUG), ("bomb", &bomb)]));
    // Its checksum is never reached.
    assert_eq!(fault(&tar, Limits::default()), (ratio.clone(), 0));
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
    // A GNU long name, which is read into memory.
    let name = vec![b'n'; 30 << 20];
    let tar =
        [tar_entry("debug", b'0', DEBUG), tar_entry("././@LongLink", b'L', &name), tar_of(&[("x", DEBUG)])]
            .concat();
    let limits = Limits { ratio: u64::MAX, ..Limits::default() };
    for (archive, expected) in [(&tar, 1), (&gzip(&tar), 0)] {
        let (kind, kept) = fault(archive, limits);
        assert!(kind.to_string().contains("headers of more than a megabyte") && kept == expected, "{kind}");
    }
}

#[test]
fn any_cut_and_any_changed_byte_ends_in_files_or_faults() {
    let tar = tar_of(&[("debug", DEBUG), ("x", b"x")]);
    for archive in [zip_of(&[("debug", DEBUG), ("x", b"x")]), gzip(&tar), zstd(&tar)] {
        for at in 0..archive.len() {
            unpack(&archive[..at], Limits::default());
            for bit in [0x01, 0x80, 0xff] {
                let mut changed = archive.clone();
                changed[at] ^= bit;
                let (files, ..) = unpack(&changed, Limits::default());
                assert!(files.len() <= 2 && files.iter().all(|(_, bytes)| bytes == DEBUG), "{at}, {bit}");
            }
        }
    }
}

#[test]
fn temporary_files_have_numbers_as_names_and_are_deleted() {
    let mut unpacker = Unpacker::new(Limits::default()).expect("a folder");
    let archive = file(&zip_of(&[("x/debug", DEBUG), ("y/debug", DEBUG)]));
    let files = unpacker.unpack(archive, "a", &|_, head| head.starts_with(b"debug"), &|_| Ok(())).files;
    let names: Vec<_> = files.iter().map(|file| file.path.file_name().expect("a name")).collect();
    assert_eq!(names, ["0", "1"]);
    assert!(files.iter().all(|file| file.path.is_file() && file.size == DEBUG.len() as u64));
    drop(unpacker);
    assert!(!files[0].path.parent().expect("a folder").exists());
}

#[test]
fn a_stream_becomes_a_file_within_the_limits() {
    let limits = Limits { unpacked: 3, ..Limits::default() };
    let mut unpacker = Unpacker::new(limits).expect("a folder");
    let path = unpacker.copy(&b"abc"[..]).expect("short enough");
    assert_eq!(std::fs::read(&path).expect("there"), b"abc");
    let error = unpacker.copy(std::io::repeat(0)).expect_err("too long");
    assert!(error.to_string().contains("the limit of `unpacked`"), "{error}");
    let folder = path.parent().expect("a folder").to_owned();
    let left: Vec<_> = std::fs::read_dir(&folder).expect("there").filter_map(Result::ok).collect();
    assert!(left.iter().all(|file| file.file_name() != "1"), "{left:?}");
    let space = DiskSpace::measured_by(10, || Ok(Some(4000)));
    let mut unpacker = Unpacker::new(Limits::default()).expect("a folder").space(&space);
    let error = unpacker.copy(&[0; 1 << 16][..]).expect_err("no room");
    assert!(error.to_string().contains("the limit of `min_free`"), "{error}");
}

#[test]
fn an_archive_is_unpacked_as_far_as_the_disk_has_room() {
    let large = [DEBUG, &[7; 5000]].concat();
    let archive = zip_of(&[("small/debug", DEBUG), ("large/debug", &large), ("rest/debug", DEBUG)]);
    let space = DiskSpace::measured_by(10, || Ok(Some(4000)));
    let mut unpacker = Unpacker::new(Limits::default()).expect("a folder").space(&space);
    let unpacked = unpacker.unpack(file(&archive), "a", &|_, head| head.starts_with(b"debug"), &|_| Ok(()));
    let [file] = &unpacked.files[..] else { panic!("one file: {unpacked:?}") };
    let [fault] = &unpacked.faults[..] else { panic!("one fault: {unpacked:?}") };
    assert_eq!(file.entry, "small/debug");
    assert!(fault.to_string().contains("the limit of `min_free`"), "{fault}");
    assert_eq!(
        fs::read_dir(file.path.parent().expect("a folder")).expect("there").count(),
        2,
        "and the lock"
    );
}
