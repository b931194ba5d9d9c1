use super::*;
use crate::answer::StringRange;
use symdex_testkit::images::Random;

/// A string of one of several lengths, the same for an id in every index.
fn text(pool: StringPool, id: u32) -> Vec<u8> {
    let len = [0, 5, 60, 300, 60_000, 1 << 16][id as usize % 6];
    vec![id.to_le_bytes()[0] ^ if pool == StringPool::Files { 0xff } else { 0 }; len]
}

/// The readable name of some names.
fn readable(id: u32) -> Option<Vec<u8>> {
    (id % 4 == 1).then(|| vec![b'r'; [0, 7, 400][id as usize % 3]])
}

/// Bytes of a granule.
const GRANULE: u64 = 1 << GRANULE_BITS;
/// Bytes of each range with an answer.
const RANGE: u64 = 12;

fn put(cache: &mut AnswerCache, key: AnswerKey, frames: &[FoundFrame]) -> Option<u32> {
    let start = key.offset - key.offset % RANGE;
    let read = |pool, id, buffer: &mut Vec<u8>| {
        assert!(buffer.is_empty());
        buffer.extend(text(pool, id));
        let start = buffer.len();
        let readable = readable(id).filter(|_| pool == StringPool::Names);
        buffer.extend(readable.iter().flatten());
        Ok(readable.map(|_| start))
    };
    cache.put(key, start..start + RANGE, frames, &mut Vec::new(), read).expect("all strings can be read")
}

/// The only answer there is to a key: a gap, or frames with few names and files.
fn answer(serial: u64, offset: u64, policy: LinePolicy) -> Vec<FoundFrame> {
    let offset = offset - offset % RANGE;
    let mut random = Random::new(serial << 40 | offset << 1 | u64::from(policy.is_statement()));
    let mut frames = Vec::new();
    let start = if random.one_in(4) { None } else { Some(ImageOffset(offset - random.below(offset + 1))) };
    let table = random.pick(Table::ALL);
    for _ in 0..random.pick(&[0, 1, 1, 2, 3, 40]) {
        let mut stored_id = || random.pick(&[0, 1, 2, 7, 3, 8, 4]);
        let (name, file) = (stored_id(), stored_id());
        let line = random.pick(&[0, 1, 8, (1 << LINE_BITS) - 1]);
        let source = SourceLocation { name, file, line };
        frames.push(FoundFrame { source, function_start: start, table });
    }
    if let Some((last, others)) = frames.split_last_mut().filter(|_| random.one_in(3)) {
        others.iter_mut().for_each(|frame| frame.function_start = None);
        last.function_start = start;
    }
    frames
}

/// The cached answer, in the form of a fresh one.
fn same(kept: Option<CachedAnswer<'_>>, frames: &[FoundFrame]) -> bool {
    let Some(kept) = kept else { return frames.is_empty() };
    let (mut all, mut strings) = (Vec::new(), Vec::new());
    for frame in frames {
        let mut string = |pool, stored: u32, readable: Option<Vec<u8>>| {
            let Some(id) = stored.checked_sub(1) else { return [StringRange::NONE; 2] };
            let start = all.len();
            all.extend(text(pool, id));
            let own_end = all.len();
            all.extend(readable.iter().flatten());
            StringRange::pair(start, readable.map(|_| own_end), all.len())
        };
        let SourceLocation { name, file, .. } = frame.source;
        let [file, _] = string(StringPool::Files, file, None);
        let [name, readable] = string(StringPool::Names, name, name.checked_sub(1).and_then(readable));
        strings.push([name, file, readable]);
    }
    let found = crate::Frames(crate::answer::FrameStorage::Found(frames, &strings, &all));
    let kept = crate::Frames(crate::answer::FrameStorage::Cached(kept));
    kept.iter().eq(found.iter()) && kept.string_ids().eq(found.string_ids()) && !frames.is_empty()
}

fn memory(cache: &AnswerCache) -> usize {
    cache.slots.len() * size_of::<u32>() + Rejected::size(cache.slots.len()) + cache.arena.capacity()
}

/// Looks up an offset of one of `ranges` ranges, `times` times, in two indexes under both policies. Returns how many
/// answers were there.
fn ask(cache: &mut AnswerCache, times: usize, ranges: u64) -> usize {
    let mut random = Random::new(1);
    let mut found = 0;
    for _ in 0..times {
        let (serial, offset) = (random.below(2), random.below(ranges * RANGE));
        let policy = random.pick(&[LinePolicy::Exact, LinePolicy::Statement]);
        let key = AnswerKey::new(serial, ImageOffset(offset), policy).expect("an ordinary one");
        let answer = answer(serial, offset, policy);
        match cache.find(key) {
            Some(place) => {
                assert!(same(cache.get(place), &answer), "{serial} {offset:#x} {policy:?}");
                found += 1;
            }
            None => {
                let place = put(cache, key, &answer);
                assert!(place.is_none_or(|place| same(cache.get(place), &answer)));
            }
        }
        assert!(memory(cache) <= cache.capacity);
    }
    found
}

#[test]
fn what_is_kept_is_what_was_answered() {
    let mut cache = AnswerCache::with_capacity(1 << 20);
    let found = ask(&mut cache, 20_000, 200);
    assert!(found > 18_000, "{found}");
    assert!(cache.arena.len() < 400_000, "texts are there once: {}", cache.arena.len());
}

#[test]
fn an_answer_is_there_for_its_whole_range_once_each_part_was_asked_for() {
    let mut cache = AnswerCache::with_capacity(1 << 20);
    ask(&mut cache, 2 * UNHURRIED, 10);
    let key = |offset| AnswerKey::new(5, ImageOffset(offset), LinePolicy::Exact).expect("an ordinary one");
    let range = 10 * GRANULE - 3..13 * GRANULE + 3;
    let frames = answer(5, 0, LinePolicy::Exact);
    let no_strings = |_, _, _: &mut Vec<u8>| Ok(None);
    let put = |cache: &mut AnswerCache, offset| {
        cache.put(key(offset), range.clone(), &frames, &mut Vec::new(), no_strings).expect("no string fails")
    };
    let first = put(&mut cache, 11 * GRANULE);
    let size = cache.arena.len();
    assert!(first.is_some());
    for there in [range.start, 10 * GRANULE - 1, 11 * GRANULE, 12 * GRANULE - 1] {
        assert_eq!(cache.find(key(there)), first, "{there}");
    }
    for other in
        [range.start - 1, 10 * GRANULE, 12 * GRANULE, range.end - 1, range.end, 11 * GRANULE + (1 << 47)]
    {
        assert_eq!(cache.find(key(other)), None, "{other}");
    }
    assert_eq!(put(&mut cache, range.end - 1), first);
    assert_eq!(cache.arena.len(), size, "the answer is there once");
    assert_eq!((cache.find(key(range.end - 1)), cache.find(key(range.end))), (first, None));
}

#[test]
fn what_has_no_room_is_forgotten_some_time() {
    let mut cache = AnswerCache::with_capacity(SMALLEST);
    let found = ask(&mut cache, 40_000, 2_000);
    assert!((1_000..20_000).contains(&found), "{found}");
    // Other addresses.
    assert!(ask(&mut cache, 4_000, 20) > 3_000);
}

#[test]
fn a_few_addresses_too_many_are_found_mostly() {
    let mut cache = AnswerCache::with_capacity(SMALLEST);
    let key = |offset| AnswerKey::new(1, ImageOffset(offset), LinePolicy::Exact).expect("an ordinary one");
    // Each range lies in a granule of its own, and needs two slots.
    let fit = (cache.capacity / BYTES_PER_SLOT / 8 * 7) as u64;
    let mut missed = 0;
    for range in (0..fit + fit / 10).cycle().take(40_000) {
        let offset = range * 3 * GRANULE;
        if cache.find(key(offset)).is_none() {
            put(&mut cache, key(offset), &[]);
            missed += 1;
        }
    }
    assert!((4_000..10_000).contains(&missed), "{missed}");
}

#[test]
fn a_few_answers_take_no_memory_and_no_memory_keeps_none() {
    let mut cache = AnswerCache::with_capacity(1 << 20);
    assert_eq!(ask(&mut cache, UNHURRIED, 10), 0);
    assert_eq!(memory(&cache), 0);
    let mut cache = AnswerCache::with_capacity(SMALLEST - 1);
    assert_eq!(ask(&mut cache, 10 * UNHURRIED, 10), 0);
    assert_eq!(memory(&cache), 0);
}

#[test]
fn what_does_not_fit_an_answer_is_not_kept() {
    let mut cache = AnswerCache::with_capacity(16 << 20);
    ask(&mut cache, 2 * UNHURRIED, 100);
    let key = AnswerKey::new(9, ImageOffset(RANGE << 32), LinePolicy::Exact).expect("an ordinary one");
    let at = |name, file, line| {
        let source = SourceLocation { name, file, line };
        FoundFrame { source, function_start: None, table: Table::Dwarf }
    };
    let good = at(2, 0, 2);
    let is_kept = |cache: &mut AnswerCache, frames: &[FoundFrame]| {
        assert_eq!(put(cache, key, frames).is_some(), cache.find(key).is_some());
        cache.find(key).is_some()
    };
    let odd = [
        at(6, 0, 2),
        at(2, 6, 2),
        at(2, 0, u32::MAX),
        at(2, 0, 1 << LINE_BITS),
        FoundFrame { function_start: Some(ImageOffset(1)), ..good },
        FoundFrame { function_start: Some(ImageOffset(13 << 32)), ..good },
    ];
    for odd in odd {
        assert!(!is_kept(&mut cache, std::slice::from_ref(&odd)), "{odd:?}");
    }
    let started = FoundFrame { function_start: Some(ImageOffset(RANGE << 32)), ..good };
    assert!(!is_kept(&mut cache, &[started, good]), "the first alone has a start");
    assert!(!is_kept(&mut cache, &[FoundFrame { table: Table::SymbolTable, ..good }, good]));
    let long = |n: u32| at(5 + 6 * n, 0, 2);
    assert!(!is_kept(&mut cache, &(0..5).map(long).collect::<Vec<_>>()), "more than its share");
    assert!(is_kept(&mut cache, &[good, started]));
    assert!(AnswerKey::new(1 << 30, ImageOffset(0), LinePolicy::Exact).is_none());
    assert!(AnswerKey::new(0, ImageOffset(1 << 48), LinePolicy::Exact).is_none());
}

#[test]
fn hashes_that_are_alike_lead_to_the_last_places() {
    let mut slots = Slots::new(1000);
    for place in 1..100 {
        slots.enter(7 << 32, place);
        assert_eq!(slots.find(7 << 32, |found| found == place), u32::try_from(place).ok());
    }
    assert!(slots.find(7 << 32, |_| true).is_some() && slots.find(1 << 63, |_| true).is_none());
}
