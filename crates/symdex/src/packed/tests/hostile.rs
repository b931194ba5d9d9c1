//! Changes valid sections and checks that the reader rejects them or stays within its limits.

use super::*;
use symdex_testkit::images::Random;

/// Small images. A test can change every byte of them.
fn images() -> impl Iterator<Item = Image> {
    (0..16).map(|seed| {
        let mut image = Image::random(seed).with_aliases(seed);
        for table in &mut image.tables {
            table.ranges.truncate(12);
        }
        image.chunk_span = 1 << 12;
        image
    })
}

#[test]
fn whatever_is_cut_is_refused_or_harmless() {
    let (mut refused, mut taken) = (0, 0);
    for image in images().take(3) {
        let sections = Sections::of(&image);
        for codes in [false, true] {
            for len in 0..sections.clone().section(codes).len() {
                let mut cut = sections.clone();
                cut.section(codes).truncate(len);
                *if cut.is_whole() { &mut taken } else { &mut refused } += 1;
            }
        }
    }
    assert!(refused > 500, "{refused} refused");
    assert_eq!(taken, 0, "a section that is not all there");
}

#[test]
fn whatever_is_changed_is_refused_or_harmless() {
    let (mut refused, mut taken) = ([0, 0], [0, 0]);
    let mut random = Random::new(7);
    for image in images() {
        let sections = Sections::of(&image);
        for round in 0..160 {
            let mut changed = sections.clone();
            let codes = round % 2 == 1;
            let bytes = changed.section(codes);
            if bytes.is_empty() {
                continue;
            }
            for _ in 0..random.pick(&[1, 1, 1, 2, 10]) {
                let at = random.below(bytes.len() as u64) as usize;
                match random.below(3) {
                    0 => bytes[at] ^= 1 << random.below(8),
                    1 => bytes[at] = random.below(256) as u8,
                    _ => bytes[at] = random.pick(&[0, 1, 2, 0x7f, 0x80, 0xff]),
                }
            }
            let count = if changed.is_whole() { &mut taken } else { &mut refused };
            count[usize::from(codes)] += 1;
        }
    }
    assert!(refused.iter().chain(&taken).all(|count| *count > 50), "{refused:?} refused, {taken:?} taken");
}

#[test]
fn bytes_at_random_are_harmless() {
    let mut random = Random::new(3);
    let sections = images().map(|image| Sections::of(&image)).find(|sections| !sections.chunks.is_empty());
    let sections = sections.expect("not all are empty");
    let mut taken = 0;
    for round in 0..1600 {
        let mut changed = sections.clone();
        let bytes = changed.section(round % 4 == 3);
        // Random bytes replace the whole section, its last 1 to 16 bytes, or all bytes from a random position on.
        let len = bytes.len() as u64;
        let from = match round % 8 {
            0 | 2 | 3 | 4 => 0,
            6 | 7 => (len - 1 - random.below(len.min(16))) as usize,
            _ => random.below(len) as usize,
        };
        let end = random.pick(&[4, 256]);
        bytes[from..].iter_mut().for_each(|byte| *byte = random.below(end) as u8);
        taken += u32::from(changed.is_whole());
    }
    assert!(taken > 5, "{taken} taken");
}
