use std::thread;

use super::{demangled, parse, print};
use crate::limits::{MAX_DEPTH, MAX_STEPS, MAX_TASKS, MAX_TEXT};

/// Names that clang 19 generated from the sources beside them, and synthetic names with rare expressions; with what
/// llvm-cxxfilt 19 prints.
const NAMES: &str = include_str!("../../testdata/cpp/names.tsv");

/// Names that GCC 12 made of gnu.cpp and that LLVM 19 does not read, and the texts in the style of LLVM.
const GNU_NAMES: &str = include_str!("../../testdata/cpp/gnu.tsv");

fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    NAMES.lines().filter_map(|line| line.split_once('\t'))
}

/// Runs `test` in a thread with this much stack.
fn with_stack(size: usize, test: fn()) {
    let thread = thread::Builder::new().stack_size(size).spawn(test).expect("a thread");
    thread.join().expect("the test passes");
}

/// Asserts that `name` stays within the limits.
fn assert_bounded(name: &str) {
    let productions = parse::productions(name);
    assert!(productions <= 3 * name.len(), "{productions} productions in {} bytes: {name:.200}", name.len());
    let Some((arena, root)) = parse::parse(name) else { return };
    let printed = print::print(&arena, root);
    // A task may look along a chain of types, or through the active forward references. Both count as steps.
    assert!(printed.steps <= MAX_STEPS + MAX_TASKS, "{} steps: {name:.200}", printed.steps);
    let Some(text) = demangled(name) else {
        assert!(printed.is_cut && printed.text.is_empty(), "{name:.200}");
        return;
    };
    assert!(text.len() <= MAX_TEXT, "{} bytes: {name:.200}", text.len());
    assert_eq!(text.ends_with('…'), printed.is_cut, "{name:.200}");
}

/// Beginnings of names, and the parts that are repeated after them.
fn repeated() -> impl Iterator<Item = String> {
    let beginnings =
        ["_Z", "_Z1f", "_Z1fI", "_Z1fIX", "_Z1fIL", "_Z1fILZ", "_Z1fIJ", "_ZN", "_ZN1AcvT_I", "_ZTV", "___Z"];
    let parts = [
        "1AI",
        "1ACI1",
        "1fQ",
        "A",
        "Apl",
        "C",
        "CI1N",
        "DB",
        "DO",
        "DT",
        "DTcl",
        "Dk1AI",
        "Dp",
        "Dv",
        "Dvng",
        "F",
        "FP",
        "I",
        "IJ",
        "J",
        "L1AI",
        "LA",
        "LN1AI",
        "LZ1fI",
        "L_Z1fI",
        "M",
        "MF",
        "N",
        "N1ACI1",
        "N1AI",
        "N1AUl",
        "NUlJ",
        "P",
        "Q",
        "SaI",
        "S_",
        "S_I",
        "TV",
        "Tc",
        "Th0_",
        "Tp",
        "Ts1AI",
        "Tt",
        "Ty",
        "U1a",
        "U1aI",
        "U3ext",
        "Ua9enable_ifI",
        "Ul",
        "UlTt",
        "X",
        "XDT",
        "XQ",
        "XUl",
        "XdnDT",
        "XoncvP",
        "XspL1AI",
        "Z",
        "Z1fE",
        "ZN1ACI1",
        "cl",
        "cvP",
        "di1a",
        "dnDT",
        "dx",
        "fl",
        "flpl",
        "il",
        "ildX",
        "ix",
        "mc",
        "ng",
        "nw",
        "nw_",
        "oncvDT",
        "pl",
        "qu",
        "rQ",
        "rqT",
        "rqX",
        "sc",
        "so",
        "sp",
        "sr1AI",
        "srNT_I",
        "st",
        "sz",
        "te",
        "tl1AI",
        "u1aI",
        "w",
        "i",
        "DpT_",
        "sT_",
        "1a",
        "1aB1b",
        "W1a",
        "S_S0_",
        "PK",
        "RO",
    ];
    beginnings.into_iter().flat_map(move |beginning| {
        let ends = ["", "i", "E"];
        parts.into_iter().flat_map(move |part| {
            // One just longer than the nesting allowed, and one of the greatest length.
            [MAX_DEPTH + 10, (MAX_TEXT - 20) / part.len()].into_iter().flat_map(move |count| {
                ends.into_iter().map(move |end| format!("{beginning}{}{end}", part.repeat(count)))
            })
        })
    })
}

/// Numbers that look random and are the same in each run (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).expect("smaller than a usize")
    }
}

/// `name` with a part of it replaced by a part of another name.
fn mutated(name: &str, other: &str, random: &mut Random) -> String {
    let start = random.below(name.len() + 1);
    let end = (start + random.below(6)).min(name.len());
    let from = random.below(other.len());
    let to = (from + random.below(12)).min(other.len());
    // Repeating a part often makes substitutions refer to longer texts.
    let times = if random.below(10) == 0 { 1 << random.below(10) } else { 1 };
    format!("{}{}{}", &name[..start], other[from..to].repeat(times), &name[end..])
}

#[test]
fn names_read_as_llvm_prints_them() {
    let mut count = 0;
    for (name, expected) in names() {
        assert_eq!(demangled(name).as_deref().unwrap_or(name), expected, "{name}");
        count += 1;
    }
    assert_eq!(count, NAMES.lines().count());
}

#[test]
fn names_of_gcc_that_llvm_does_not_read_are_demangled() {
    for line in GNU_NAMES.lines() {
        let (name, expected) = line.split_once('\t').expect("a name and its text");
        assert_eq!(demangled(name).as_deref(), Some(expected), "{name}");
    }
}

#[test]
fn names_that_llvm_19_does_not_read_are_demangled() {
    for (name, expected) in [
        // LLVM 19 takes this operator in expressions only.
        ("_ZN1SpmEi", "S::operator->*(int)"),
        // The call of a function in parentheses.
        ("_Z1fIiEDTcp1gfp_EET_", "decltype((g)(fp)) f<int>(int)"),
        // LLVM 19 forgets the template arguments of a local name before it reads the parameters.
        ("_ZZ1fvENK1S1gIiEEvT_", "void f()::S::g<int>(int) const"),
        // Mach-O's underscore.
        ("__Z1fi", "f(int)"),
        ("____Z1fi_block_invoke.3", "invocation function for block in f(int)"),
        // Clones of GCC's transactional memory.
        ("_ZGTtN1A1fEv", "transaction clone for A::f()"),
        ("_ZGTnN1A1fEv.cold", "non-transaction clone for A::f() (.cold)"),
        ("_ZGA1fi", "hidden alias for f(int)"),
    ] {
        assert_eq!(demangled(name).as_deref(), Some(expected), "{name}");
    }
}

#[test]
fn suffixes_and_blocks_are_printed() {
    for (name, expected) in [
        ("_Z1fi.cold", "f(int) (.cold)"),
        ("_Z1fi.llvm.123", "f(int) (.llvm.123)"),
        ("_Z1fi.part.0.isra.3", "f(int) (.part.0.isra.3)"),
        ("___Z1fi_block_invoke", "invocation function for block in f(int)"),
        ("___Z1fi_block_invoke_2.llvm.5", "invocation function for block in f(int)"),
    ] {
        assert_eq!(demangled(name).as_deref(), Some(expected), "{name}");
    }
    for name in [
        "_Z1fi_",
        "___Z1fi",
        "___Z1fi_block_invoke_",
        "_____Z1fi",
        "_Z",
        "Z1fi",
        "_",
        "",
        "_Z1f\u{e9}",
        "_Z2\u{e9}",
    ] {
        assert_eq!(demangled(name).as_deref(), (name == "_Z2\u{e9}").then_some("\u{e9}"), "{name}");
    }
}

/// Demanglers that backtrack on errors take twice as long for each `SaI`.
#[test]
fn unfinished_template_arguments_are_given_up_in_one_pass() {
    for count in [10, 20, 40, 80, 10_000] {
        let name = format!("_Z1f{}i", "SaI".repeat(count));
        assert_eq!(demangled(&name), None);
        assert_bounded(&name);
    }
}

#[test]
fn no_name_takes_more_than_256_kb_of_stack() {
    with_stack(256 << 10, || {
        repeated().for_each(|name| _ = demangled(&name));
        names().for_each(|(name, _)| _ = demangled(name));
    });
}

#[test]
fn repeated_parts_stay_within_the_limits() {
    repeated().for_each(|name| assert_bounded(&name));
}

#[test]
fn each_letter_in_a_name_of_64_kib_stays_within_the_limits() {
    for letter in (b'!'..=b'~').map(char::from) {
        for beginning in ["_Z", "_Z1f", "_Z1fIX", "_ZN"] {
            assert_bounded(&format!("{beginning}{}", letter.to_string().repeat(MAX_TEXT - beginning.len())));
        }
    }
}

/// The name has 2,050 nested scopes. Each needs a waiting task before the first character is printed.
#[test]
fn a_name_that_reaches_a_limit_before_its_first_character_stays_raw() {
    let name = format!("_ZN{}Ev", "1a".repeat(2050));
    let (arena, root) = parse::parse(&name).expect("a valid name");
    let printed = print::print(&arena, root);
    assert!(printed.is_cut && printed.text.is_empty());
    assert_eq!(demangled(&name), None);
    assert_eq!(crate::demangle(name.as_bytes()), name);
}

/// Each type is an expansion of the one before, and the only pack is empty.
#[test]
fn expansions_that_print_nothing_are_cut_after_the_maximum_steps() {
    let twice = (0..60_u32).map(|number| {
        let last = match number {
            0 => "T_".to_owned(),
            _ => format!("S{}_", sequence_number(3 * number)),
        };
        format!("Dp1AI{last}{last}E")
    });
    let name = format!("_Z1fIJEEv{}", twice.collect::<String>());
    let (arena, root) = parse::parse(&name).expect("a valid name");
    let printed = print::print(&arena, root);
    assert!(printed.is_cut && printed.steps <= MAX_STEPS + MAX_TASKS, "{} steps", printed.steps);
    assert_bounded(&name);
}

/// The only pack is empty, so each expansion of it removes the long name that it printed.
#[test]
fn text_that_is_printed_and_removed_again_counts() {
    let removed = |times: usize| {
        let name = format!("_Z1fIJEEvDp{0}{1}IT_E{2}", 50_000, "x".repeat(50_000), "S3_".repeat(times));
        let (arena, root) = parse::parse(&name).expect("a valid name");
        assert_bounded(&name);
        print::print(&arena, root)
    };
    let few = removed(10);
    assert!(few.text == "void f<>()" && !few.is_cut, "{:.50}", few.text);
    assert!(removed(3000).is_cut);
}

#[test]
fn substitutions_that_double_the_text_are_cut_at_64_kib() {
    let pairs = (1..60_u32).map(|number| format!("1PIS{0}_S{0}_E", sequence_number(2 * number - 2)));
    let name = format!("_Z1f1PIiiE{}", pairs.collect::<String>());
    assert!(name.len() < 1000);
    let text = demangled(&name).expect("a valid name");
    assert!(
        text.starts_with("f(P<int, int>") && text.ends_with('…') && text.len() > MAX_TEXT - 10,
        "{}",
        text.len()
    );
    assert_bounded(&name);
}

/// The digits of a substitution after the first, which has none: 0 is the second.
fn sequence_number(number: u32) -> String {
    let digit = |number: u32| char::from_digit(number % 36, 36).expect("a digit").to_ascii_uppercase();
    if number < 36 { digit(number).to_string() } else { [digit(number / 36), digit(number)].iter().collect() }
}

#[test]
fn mutated_names_stay_within_the_limits() {
    with_stack(512 << 10, || {
        let names: Vec<_> = names().map(|(name, _)| name).collect();
        let mut random = Random(0x2545_f491_4f6c_dd1d);
        let mut read = 0;
        for _ in 0..20_000 {
            let mut name = names[random.below(names.len())].to_owned();
            for _ in 0..=random.below(3) {
                name = mutated(&name, names[random.below(names.len())], &mut random);
            }
            assert_bounded(&name);
            read += usize::from(demangled(&name).is_some());
        }
        // Else the mutations would test the first error only.
        assert!(read > 500, "{read} names are valid");
    });
}
