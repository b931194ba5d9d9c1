//! One of several parts of the inputs.

use std::path::Path;
use std::str::FromStr;

use xxhash_rust::xxh3::xxh3_64;

/// Part `number` of `count` parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shard {
    number: u64,
    count: u64,
}

impl Shard {
    /// Whether the shard has `input`. This depends on the text of the path only, so that every machine agrees.
    pub(super) fn has(&self, input: &Path) -> bool {
        xxh3_64(input.as_os_str().as_encoded_bytes()) % self.count == self.number
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(number, count)| {
            let digits = |text: &str| text.parse().ok().filter(|_| !text.starts_with('+'));
            Some(Self { number: digits(number)?, count: digits(count)? })
        });
        numbers
            .filter(|shard| shard.number < shard.count)
            .ok_or_else(|| "expected I/N with I from 0 to N-1, such as 0/16 to 15/16".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_input_is_in_one_shard_and_stays_there() {
        let shards: Vec<Shard> = (0..4).map(|n| format!("{n}/4").parse().expect("a shard")).collect();
        let mut sizes = [0; 4];
        for n in 0..400 {
            let input = format!("dsyms/{n}.zip");
            let of: Vec<_> = shards.iter().filter(|shard| shard.has(Path::new(&input))).collect();
            assert_eq!(of.len(), 1);
            sizes[usize::try_from(of[0].number).expect("small")] += 1;
        }
        assert!(sizes.iter().all(|size| (60..140).contains(size)), "{sizes:?}");
        // Machines with different versions of symdex agree.
        let numbers = ["dsyms/0.zip", "a", "b"].map(|input| xxh3_64(input.as_bytes()) % 1000);
        assert_eq!(numbers, [270, 719, 615]);
    }

    #[test]
    fn other_texts_are_no_shards() {
        for text in ["", "1", "4/4", "0/0", "-1/4", "+1/4", "1/4/2", "a/4", "1/"] {
            assert!(text.parse::<Shard>().is_err(), "{text:?}");
        }
    }
}
