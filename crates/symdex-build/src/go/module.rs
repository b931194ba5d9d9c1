//! The module data of a Go program: a structure of pointers that the linker writes for the runtime.

use super::records::{Record, TreeEntry};
use super::{Header, Layout, Program, word_at};

/// The pointers of the module data that are needed.
pub(super) struct Module {
    /// The address that the functions' addresses count from (`text`).
    pub(super) text: u64,
    /// The address that the offsets of the trees of inlined calls count from (`gofunc`). `None` if it is not found.
    pub(super) trees: Option<u64>,
}

/// The number of the word `text`. Since Go 1.16, the same fields come before it.
const TEXT: usize = 22;
/// The numbers of the words one of which is `gofunc`: 38 in Go 1.18, 40 in Go 1.20, 43 in Go 1.27.
const TREES: std::ops::Range<usize> = 36..56;
/// How many functions tell which of the words is `gofunc`.
const SAMPLE: usize = 64;

impl Module {
    /// The module data of the program whose `.gopclntab` begins at `address`. `None` if there is none.
    ///
    /// Its first word points to `.gopclntab`, and its second one to the names in it.
    pub(super) fn find(program: &Program<'_>, address: u64, header: &Header<'_>) -> Option<Self> {
        let (names, size) = (address.checked_add(header.names_offset)?, header.word_size);
        let word =
            |place: u64, number: usize| program.pointer(place.checked_add((number * size) as u64)?, size);
        let is_module = |place: &u64| word(*place, 0) == Some(address) && word(*place, 1) == Some(names);
        let relocated = program.pointers.relocations.iter().filter(|(_, value)| *value == address);
        let relocated = relocated.map(|(place, _)| *place).find(is_module);
        let place = relocated.or_else(|| stored(program, address, size).find(is_module))?;
        let sample = sample(header);
        let is_base = |base: &u64| {
            let at_base = sample.iter().filter(|one| one.is_at(*base, program, header)).count();
            2 * at_base > sample.len()
        };
        let trees = TREES.filter_map(|number| word(place, number)).find(is_base);
        Some(Self { text: word(place, TEXT)?, trees })
    }
}

/// The places in the data where the pointer `value` is stored.
fn stored<'p>(program: &'p Program<'_>, value: u64, size: usize) -> impl Iterator<Item = u64> + 'p {
    let all = program
        .data
        .iter()
        .flat_map(move |section| section.bytes.chunks_exact(size).zip((section.address..).step_by(size)));
    all.filter(move |(bytes, _)| {
        word_at(bytes, 0, size).is_some_and(|word| program.pointers.value(word) == value)
    })
    .map(|(_, place)| place)
}

/// A function that has a tree of inlined calls.
struct Sampled {
    tree: u64,
    code_size: u64,
}

fn sample(header: &Header<'_>) -> Vec<Sampled> {
    let sampled = |number: usize| {
        let ((start, record), (end, _)) = (header.function(number)?, header.function(number + 1)?);
        Some(Sampled { tree: Record::read(header, record)?.tree?, code_size: end.checked_sub(start)? })
    };
    let count = if header.layout == Layout::Go116 { 0 } else { header.function_count };
    (0..count).filter_map(sampled).take(SAMPLE).collect()
}

impl Sampled {
    /// Whether the tree is at its place if places of trees count from `base`: the first entry names a function, and
    /// has a call in the code. One function has the name at 0, where data that is no tree often has zeros.
    fn is_at(&self, base: u64, program: &Program<'_>, header: &Header<'_>) -> bool {
        let tree = base.checked_add(self.tree).and_then(|address| program.data.from(address));
        let is_name =
            |at: usize| matches!(header.names.get(at.wrapping_sub(1)..), Some([0, first, ..]) if *first != 0);
        tree.and_then(|tree| TreeEntry::read(header, tree, 0))
            .is_some_and(|entry| is_name(entry.name as usize) && u64::from(entry.call) < self.code_size)
    }
}
