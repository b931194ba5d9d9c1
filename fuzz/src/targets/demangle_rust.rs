//! Rust names of both manglings.

use crate::{checks, input};

pub fn run(data: &[u8]) {
    let (kind, name) = input::choice(data);
    match kind % 2 {
        0 => checks::demangled(&[b"_R", name].concat()),
        _ => checks::demangled(&[b"_ZN", name, b"17h0123456789abcdefE"].concat()),
    }
}

#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let new = [
        "NvC6_123foo3bar",
        "INvNtC3std3mem8align_ofjE",
        "NvMs_C1aINtB4_1bFUKCylEB2_E1c",
        "INvC1a1bDNtC1a1bp1cRTlBa_EEKj7f_E",
    ];
    let legacy = ["4core3fmt5write", "17_$LT$T$u20$as$u20$U$GT$", "3a..b"];
    let seed = |kind: &'static str| move |name: &str| format!("{kind}{name}").into_bytes();
    new.into_iter().map(seed("0")).chain(legacy.into_iter().map(seed("1"))).collect()
}
