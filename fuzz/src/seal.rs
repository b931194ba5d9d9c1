//! Makes the checksums of changed indexes correct, so that changes reach the code after the checks.

pub use symdex_testkit::images::seal::sealed;

#[cfg(test)]
mod tests {
    use symdex::Index;

    use super::sealed;

    #[test]
    fn an_intact_index_is_sealed_to_the_same_bytes() {
        for index in crate::input::indexes() {
            assert!(sealed(&index).is_some_and(|sealed| sealed == index));
        }
    }

    #[test]
    fn a_changed_index_passes_its_checksums() {
        for index in crate::input::indexes() {
            for at in [130, 200, index.len() / 2] {
                let mut changed = index.clone();
                changed[at] ^= 0x55;
                let changed = sealed(&changed).expect("longer than a header");
                let error = Index::open(changed).and_then(|index| index.verify()).err();
                let is_checksum = matches!(error, Some(symdex::Error::Checksum { .. }));
                assert!(!is_checksum, "byte {at}: {error:?}");
            }
        }
    }
}
