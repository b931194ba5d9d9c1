//! Swift names.

use crate::{checks, input};

const PREFIXES: [&str; 4] = ["$s", "_$s", "_T0", "$S"];

pub fn run(data: &[u8]) {
    let (kind, name) = input::choice(data);
    checks::demangled(&[PREFIXES[usize::from(kind) % PREFIXES.len()].as_bytes(), name].concat());
}

#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let names = [
        "4Demo6WidgetC4size5scaleACSi_SdtcfC",
        "4Demo3map_2byq_x_q_xXEtr0_lF",
        "4Demo3run4withyyyXE_tFyycfU_SiycfU0_",
        "SSIegn_SSIegg_TR",
        "4Demo4loadyyYaFTQ0_",
    ];
    names.map(|name| format!("\0{name}").into_bytes()).into()
}
