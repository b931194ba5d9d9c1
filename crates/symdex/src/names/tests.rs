use std::io::ErrorKind;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::error::Error;
use crate::format::{Checksums, MAX_STRING, PageChecks, PageReader, SectionKind, checksums_size};
use crate::image::ImageId;
use crate::write::bits::{BitWriter, put_varint};
use crate::write::page_sums::PageSums;
use crate::write::{encode_names, encode_names_until};
use symdex_testkit::images::Random;

const KIND: SectionKind = SectionKind::NamePage;

/// Reads all names of a section and verifies the whole section.
fn read(section: &[u8], names: usize) -> Result<Vec<Vec<u8>>, Error> {
    let id = ImageId::new(&[7; 16]).expect("16 bytes are an id");
    let (checksums, checked) = (PageSums::of(&id, KIND, section), PageChecks::new(section.len() as u64));
    assert_eq!(checksums.len() as u64, checksums_size(section.len() as u64));
    let sums = Checksums::new(&id, KIND);
    let pages = PageReader { kind: KIND, section, sums, checksums: &checksums, checked: &checked };
    let layout = NameLayout::decode(&pages, 0, names as u64)?;
    let reader = NameReader { layout: &layout, pages };
    let read = (0..).take(names).map(|id| {
        let mut name = b"before".to_vec();
        reader.append(id, &mut name).map(|()| name.split_off(6))
    });
    let read = read.collect::<Result<Vec<Vec<u8>>, _>>()?;
    reader.verify().map(|_| read)
}

fn round_trip(names: &[Vec<u8>]) -> usize {
    let section = encode_names(names).expect("few names");
    assert!(read(&section, names.len()).expect("as written") == names);
    section.len()
}

#[test]
fn names_of_any_bytes_round_trip() {
    let mut random = Random::new(5);
    round_trip(&[]);
    round_trip(&[Vec::new(), Vec::new()]);
    let pieces = [
        "_Z",
        "N",
        "S1_",
        "E",
        "9allocator",
        "12basic_string",
        "Cs4Zlz1fUqNwX_",
        "_",
        "4core",
        "I",
        "x",
        "3",
        "HTML",
    ];
    for len in [1, 15, 16, 17, 100, 1000] {
        for alphabet in [&[0u8][..], b"ab", b"_ZNE123", &(0..=255).collect::<Vec<u8>>()] {
            let any = |random: &mut Random| (0..random.below(60)).map(|_| random.pick(alphabet)).collect();
            round_trip(&(0..len).map(|_| any(&mut random)).collect::<Vec<_>>());
        }
        for prefix in ["_ZN", "_RNv", "$s", "-["] {
            let mangled = |random: &mut Random| {
                let name = (0..random.below(40)).map(|_| random.pick(&pieces));
                std::iter::once(prefix).chain(name).collect::<String>().into_bytes()
            };
            round_trip(&(0..len).map(|_| mangled(&mut random)).collect::<Vec<_>>());
        }
    }
}

#[test]
fn the_longest_names_round_trip_whatever_they_repeat() {
    let mut random = Random::new(6);
    let all: Vec<u8> = (0..=255).collect();
    let long: Vec<u8> = (0..MAX_STRING).map(|_| random.pick(&all)).collect();
    let mangled = [b"_Z".as_slice(), &long[2..]].concat();
    let same = vec![b'a'; MAX_STRING];
    let words = "someWords_".repeat(MAX_STRING / 10).into_bytes();
    let names =
        [long, mangled, same.clone(), words.clone(), words[1..].to_vec(), same[..MAX_STRING - 1].to_vec()];
    round_trip(&names);
    assert!(round_trip(&[words]) < 200, "what repeats is stored once");
}

#[test]
fn what_names_share_is_stored_once() {
    let name = |n: u32| format!("_ZNSt3__16vectorIN4demo8thing{n:03}ENS_9allocatorIS2_EEE9push_backEOS2_");
    let names: Vec<Vec<u8>> = (0..1000).map(|n| name(n).into_bytes()).collect();
    let bytes: usize = names.iter().map(Vec::len).sum();
    assert!(round_trip(&names) < bytes / 4);
}

#[test]
fn encoding_stops_once_it_takes_too_much_memory() {
    // The hexadecimal digits of squares share little.
    let names: Vec<Vec<u8>> = (1..20_000u64).map(|n| format!("{:x}", n * n * n * n).into_bytes()).collect();
    let most = AtomicUsize::new(0);
    let count = |taken| _ = most.fetch_max(taken, Ordering::Relaxed);
    let encoded = encode_names_until(&names, &|taken| {
        count(taken);
        false
    });
    assert!(encoded.is_ok());
    let most = most.into_inner();
    // At least the number of each name is kept, and at most a few bytes for each byte.
    let bytes: usize = names.iter().map(Vec::len).sum();
    assert!((4 * names.len()..64 * bytes).contains(&most), "{most} bytes for names of {bytes} bytes");
    let error = encode_names_until(&names, &|taken| taken > most / 2).expect_err("stopped");
    assert!(matches!(&error, Error::Io(error) if error.kind() == ErrorKind::TimedOut), "{error}");
}

#[test]
fn a_changed_byte_fails_or_changes_nothing() {
    let mut random = Random::new(7);
    let name =
        |n| format!("_ZN4demo{}fooI{n}E{}Ev", random.below(1 << 40), random.below(1 << 40)).into_bytes();
    let names: Vec<Vec<u8>> = (0..300).map(name).collect();
    let section = encode_names(&names).expect("few names");
    let id = ImageId::new(&[7; 16]).expect("16 bytes are an id");
    let (sums, checksums) = (Checksums::new(&id, KIND), PageSums::of(&id, KIND, &section));
    assert!(section.len() > 3 << 10, "several pages: {}", section.len());
    for at in 0..section.len() + checksums.len() {
        let (mut section, mut checksums) = (section.clone(), checksums.clone());
        match at.checked_sub(section.len()) {
            None => section[at] ^= 4,
            Some(at) => checksums[at] ^= 4,
        }
        let checked = PageChecks::new(section.len() as u64);
        let pages =
            PageReader { kind: KIND, section: &section, sums, checksums: &checksums, checked: &checked };
        let Ok(layout) = NameLayout::decode(&pages, 0, names.len() as u64) else { continue };
        let reader = NameReader { layout: &layout, pages };
        for n in [0, 17, 150, 299u32] {
            let mut name = Vec::new();
            if reader.append(n, &mut name).is_ok() {
                assert_eq!(name, names[n as usize]);
            }
        }
        assert!(reader.verify().is_err());
    }
}

/// A section with one name. The name consists of `symbol` only. Terminal 0 is "x".
fn grammar_of(rules: &[[u32; 2]], width: u32, symbol: u32) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, rules.len() as u64);
    out.extend([1, width.to_le_bytes()[0], 1, 1]);
    out.extend([0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0]);
    let bits = |numbers: &[u32]| {
        let mut out = BitWriter::default();
        numbers.iter().for_each(|number| out.put((*number).into(), width));
        out.finish()
    };
    out.extend(bits(rules.as_flattened()));
    out.extend(bits(&[symbol]));
    out.push(b'x');
    out
}

#[test]
fn grammars_that_make_no_sense_fail_and_come_to_an_end() {
    let expands = |rules: &[[u32; 2]], width, symbol| read(&grammar_of(rules, width, symbol), 1);
    assert_eq!(expands(&[[0, 0], [1, 0]], 2, 2).expect("sensible"), [b"xxx"]);
    for (rules, symbol) in [
        (vec![[1, 0]], 1),
        (vec![[0, 1]], 1),
        (vec![[2, 0], [1, 0]], 2),
        (vec![[0, 7]], 1),
        (vec![[0, 0]], 2),
        (vec![], 1),
    ] {
        assert!(expands(&rules, 3, symbol).is_err_and(|e| e.cause().is_damage()), "{rules:?}");
    }
    // Each rule doubles the previous one. A name of 2^16 bytes is valid, and a name of 2^17 bytes is too long. The
    // expansion of 2^60 bytes does not start.
    let twice = |n| (0..n).map(|n| [n, n]).collect::<Vec<_>>();
    assert_eq!(expands(&twice(16), 8, 16).expect("as long as a name may be")[0].len(), MAX_STRING);
    assert!(expands(&twice(17), 8, 17).is_err());
    assert!(expands(&twice(60), 8, 60).is_err());
    // Nested rules: a depth of 64 is valid, a depth of 65 is not.
    let deep = |n| (0..n).map(|n| [n, 0]).collect::<Vec<_>>();
    assert_eq!(expands(&deep(64), 8, 64).expect("deep").concat().len(), 65);
    assert!(expands(&deep(65), 8, 65).is_err());
}

#[test]
fn heads_that_make_no_sense_are_refused() {
    let names = [b"main".to_vec(), b"_Z4mainv".to_vec()];
    let section = encode_names(&names).expect("two names");
    assert!(read(&section, 2).is_ok());
    for names in [0, 1, 16 + 1, usize::MAX] {
        assert!(read(&section, names).is_err(), "{names} names");
    }
    for len in 0..section.len() {
        assert!(read(&section[..len], 2).is_err(), "cut to {len}");
    }
    let mut random = Random::new(8);
    for _ in 0..20_000 {
        let mut changed = section.clone();
        for _ in 0..=random.below(3) {
            let at = usize::try_from(random.below(section.len() as u64)).expect("small");
            changed[at] = random.pick(&[0, 1, 2, 0x7f, 0x80, 0xff]);
        }
        // A changed section must not cause a panic or a name that is too long.
        if let Ok(names) = read(&changed, 2) {
            assert!(names.iter().all(|name| name.len() <= MAX_STRING));
        }
    }
    assert!(section.len() > GROUP_SIZE);
}

#[test]
fn no_bytes_are_there_even_behind_the_last_page() {
    let (id, section) = (ImageId::new(&[7; 16]).expect("16 bytes are an id"), [0; 1024]);
    let (sums, checksums) = (Checksums::new(&id, KIND), PageSums::of(&id, KIND, &section));
    let checked = PageChecks::new(1024);
    let pages = PageReader { kind: KIND, section: &section, sums, checksums: &checksums, checked: &checked };
    assert_eq!(pages.bytes(1024..1024).expect("nothing is asked for"), b"");
    assert!(pages.bytes(1024..1025).is_err_and(|error| error.cause().is_damage()));
    assert!(pages.bytes(1025..1025).is_err_and(|error| error.cause().is_damage()));
}
