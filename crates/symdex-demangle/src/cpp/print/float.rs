//! Floating point literals as C's `%a` prints them: `0x1.8p+1`.

use std::fmt::Write as _;

use super::super::nodes::Float;

/// Writes the floating point value whose bits are `digits`, most significant byte first.
pub(super) fn write(out: &mut String, kind: Float, digits: &str) {
    let Ok(bits) = u128::from_str_radix(digits, 16) else { return };
    match kind {
        Float::Single => {
            let is_negative = bits >> 31 & 1 == 1;
            // C prints a float as a double, so the fraction has 52 bits.
            write_value(out, is_negative, Parts::of(bits, 23, 8, 127), 52);
            out.push('f');
        }
        Float::Double => write_value(out, bits >> 63 & 1 == 1, Parts::of(bits, 52, 11, 1023), 52),
        Float::Extended => {
            write_extended(out, bits);
            out.push('L');
        }
    }
}

/// The value is `lead.fraction` times two to the power of `exponent`.
enum Parts {
    Number { lead: u8, fraction: u128, exponent: i32 },
    Infinite,
    NotANumber,
}

impl Parts {
    /// The parts of an IEEE number; the fraction has 52 bits.
    fn of(bits: u128, fraction_bits: u32, exponent_bits: u32, bias: i32) -> Self {
        let mask = (1_u128 << fraction_bits) - 1;
        let (fraction, biased) = (bits & mask, bits >> fraction_bits & ((1 << exponent_bits) - 1));
        let biased = i32::try_from(biased).unwrap_or_default();
        let is_special = biased == (1 << exponent_bits) - 1;
        match (is_special, biased, fraction) {
            (true, _, 0) => Self::Infinite,
            (true, ..) => Self::NotANumber,
            (false, 0, 0) => Self::Number { lead: 0, fraction: 0, exponent: 0 },
            // A subnormal float is a normal double. A subnormal double has the leading digit 0.
            (false, 0, _) if fraction_bits < 52 => {
                let shift = fraction.leading_zeros() - (127 - fraction_bits);
                let fraction = (fraction << shift & mask) << (52 - fraction_bits);
                let shift = i32::try_from(shift).unwrap_or_default();
                Self::Number { lead: 1, fraction, exponent: 1 - bias - shift }
            }
            (false, 0, _) => Self::Number { lead: 0, fraction, exponent: 1 - bias },
            _ => {
                Self::Number { lead: 1, fraction: fraction << (52 - fraction_bits), exponent: biased - bias }
            }
        }
    }
}

fn write_value(out: &mut String, is_negative: bool, parts: Parts, fraction_bits: u32) {
    out.push_str(if is_negative { "-" } else { "" });
    match parts {
        Parts::Infinite => out.push_str("inf"),
        Parts::NotANumber => out.push_str("nan"),
        Parts::Number { lead, fraction, exponent } => {
            _ = write!(out, "0x{lead:x}");
            if fraction != 0 {
                let width = usize::try_from(fraction_bits / 4).unwrap_or_default();
                let digits = format!("{fraction:0width$x}");
                _ = write!(out, ".{}", digits.trim_end_matches('0'));
            }
            _ = write!(out, "p{exponent:+}");
        }
    }
}

/// The 80-bit format of x86: sign, 15 bits of exponent, 64 bits of significand. C prints the first four bits of the
/// significand before the point.
fn write_extended(out: &mut String, bits: u128) {
    let significand = bits & u128::from(u64::MAX);
    let biased = i32::try_from(bits >> 64 & 0x7fff).unwrap_or_default();
    let lead = u8::try_from(significand >> 60).unwrap_or_default();
    let fraction = significand & ((1 << 60) - 1);
    let parts = match (biased, significand) {
        (0x7fff, _) if significand << 1 & u128::from(u64::MAX) == 0 => Parts::Infinite,
        (0x7fff, _) => Parts::NotANumber,
        (_, 0) => Parts::Number { lead: 0, fraction: 0, exponent: 0 },
        _ => Parts::Number { lead, fraction, exponent: biased.max(1) - 16383 - 3 },
    };
    write_value(out, bits >> 79 & 1 == 1, parts, 60);
}
