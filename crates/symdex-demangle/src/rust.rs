//! Rust names of both manglings, without hashes.
//!
//! rustc-demangle bounds its recursion, but not its steps: a name can refer back to a part of itself that takes
//! hundreds of steps and prints one character. So the number of writes is limited by the length of the name.

use std::fmt::{self, Write as _};

use crate::limits::{MAX_RUST_STEPS, MAX_TEXT, RUST_STACK};
use crate::mark_as_cut;
use crate::stack::with_stack;

/// Returns whether `name` is a Rust name in the legacy mangling. Such a name has the form of a nested C++ name. Its
/// last identifier is a hash: `h` and 16 hexadecimal digits. Identifiers may contain dots, and a suffix that begins
/// with a dot may follow the name.
pub(super) fn is_legacy(name: &[u8]) -> bool {
    let Some(mut rest) = name.strip_prefix(b"_ZN").or_else(|| name.strip_prefix(b"__ZN")) else {
        return false;
    };
    let mut last: &[u8] = b"";
    while !matches!(rest, [b'E'] | [b'E', b'.', ..]) {
        let Some((identifier, after)) = identifier(rest) else { return false };
        (last, rest) = (identifier, after);
    }
    matches!(last, [b'h', digits @ ..] if digits.len() == 16 && digits.iter().all(u8::is_ascii_hexdigit))
}

/// The identifier at the start of `name`, which begins with its length, and the rest.
fn identifier(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let digits = name.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = name.split_at_checked(digits)?;
    let len = std::str::from_utf8(digits).ok()?.parse().ok()?;
    rest.split_at_checked(len)
}

/// Returns whether `name` begins as names in the v0 mangling do: with `_R` and the capital letter of a path.
pub(super) fn is_v0(name: &[u8]) -> bool {
    matches!(name, [b'_', b'R', b'A'..=b'Z', ..] | [b'_', b'_', b'R', b'A'..=b'Z', ..])
}

/// The text of the mangled `name` without its hash. Returns `None` if it is not a mangled Rust name.
pub(super) fn demangled(name: &str) -> Option<String> {
    with_stack(RUST_STACK, || {
        let demangled = rustc_demangle::try_demangle(name).ok()?;
        let mut text =
            Bounded { text: String::new(), writes: MAX_RUST_STEPS / name.len().max(1), is_cut: false };
        let written = write!(text, "{demangled:#}");
        (written.is_ok() || text.is_cut).then_some(text.text)
    })
}

/// A text limited to [`MAX_TEXT`] bytes and a number of writes. It is truncated where it exceeds one of them, and the
/// writer is stopped.
struct Bounded {
    text: String,
    writes: usize,
    is_cut: bool,
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.is_cut {
            return Err(fmt::Error);
        }
        self.text.push_str(part);
        self.is_cut = self.writes == 0 || self.text.len() > MAX_TEXT;
        if self.is_cut {
            mark_as_cut(&mut self.text);
            return Err(fmt::Error);
        }
        self.writes -= 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `I <path> <type>... E` with a type that is a path of `chain` empty names, and then pairs of the type before.
    fn doubling(chain: usize, pairs: usize) -> String {
        let mut name = "INvC1a1b".to_owned();
        let mut last = name.len();
        name += &format!("{}C1a{}", "Nt".repeat(chain), "0".repeat(chain));
        for _ in 0..pairs {
            let reference = format!("B{}", back_reference(last));
            last = name.len();
            name += &format!("T{reference}{reference}E");
        }
        format!("_R{name}E")
    }

    /// A number in base 62: `_` is 0, `0_` is 1.
    fn back_reference(position: usize) -> String {
        let digit = |value: usize| match u32::try_from(value).expect("a digit") {
            value @ 0..36 => char::from_digit(value, 36),
            value => char::from_digit(value - 26, 36).map(|letter| letter.to_ascii_uppercase()),
        };
        match position.checked_sub(1) {
            None => "_".to_owned(),
            Some(value) if value < 62 => format!("{}_", digit(value).expect("a digit")),
            Some(value) => {
                format!("{}{}_", digit(value / 62).expect("a digit"), digit(value % 62).expect("a digit"))
            }
        }
    }

    #[test]
    fn back_references_are_followed() {
        assert_eq!(demangled(&doubling(1, 2)).as_deref(), Some("a::b::<a, (a, a), ((a, a), (a, a))>"));
    }

    #[test]
    fn names_that_take_many_steps_for_little_text_are_cut_early() {
        for (chain, pairs) in [(10, 20), (450, 20)] {
            let name = doubling(chain, pairs);
            let text = demangled(&name).expect("a valid name");
            assert!(text.ends_with('…'), "{} bytes", text.len());
            // A write is at least one byte here.
            assert!(text.len() <= 4 * MAX_RUST_STEPS / name.len(), "{} bytes", text.len());
        }
    }

    #[test]
    fn deep_names_overflow_no_stack_of_256_kb() {
        let test = || {
            for part in [
                "R",
                "S",
                "T",
                "INvC1a1b",
                "MC1a",
                "YC1a",
                "Nt",
                "NtMC1a",
                "FKC",
                "DNtC1a1bp1cR",
                "FG0_",
                "XC1aR",
            ] {
                for count in [100, 490, 600, 8000] {
                    _ = demangled(&format!("_RINvC1a1b{}lE", part.repeat(count)));
                    _ = demangled(&format!("_R{}C1a{}", part.repeat(count), "1a".repeat(count)));
                    _ = demangled(&format!("_RINvC1a1b{}l{}E", part.repeat(count), "E".repeat(count)));
                }
            }
        };
        let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(test).expect("a thread");
        thread.join().expect("no overflow");
    }
}
