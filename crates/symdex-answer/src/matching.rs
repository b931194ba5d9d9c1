//! Images of one report that are answered by others than their ids name.

use std::fmt;
use std::sync::Arc;

use symdex_report::KnownImage;
use symdex_store::IdPrefix;

use super::assumption::{ResolvedAssumption, ResolvedTarget};
use super::{SourceError, Symbolicator};

/// The assumptions of one report, and whether its images without an id are matched by name.
/// [`Symbolicator::matching`] creates it, and [`Session::matching`](super::Session::matching) uses it.
pub struct Matching {
    pub(crate) assumptions: Vec<ResolvedAssumption>,
    /// The images that can be matched by name.
    pub(crate) by_name: Option<Arc<Vec<KnownImage>>>,
}

impl Symbolicator {
    /// Resolves assumptions for one report. Each of `assumed` is the name of an image in the report, and the id, or its
    /// first digits, of the image that answers it. If `is_by_name`, an image without an id is answered by the only
    /// image of `known` with its name and architecture. First digits of ids are searched in `known`, too.
    ///
    /// # Errors
    ///
    /// [`SourceError::UnknownId`] or [`SourceError::AmbiguousId`] if not exactly one image has the id of an assumption.
    pub fn matching(
        &self,
        assumed: &[(String, IdPrefix)],
        is_by_name: bool,
        known: Arc<Vec<KnownImage>>,
    ) -> Result<Matching, SourceError> {
        let resolved = |(name, id): &(String, IdPrefix)| {
            let target = ResolvedTarget::Id(self.id_of(name, id, || Arc::clone(&known))?);
            Ok(ResolvedAssumption::new(name, target))
        };
        let assumptions = assumed.iter().map(resolved).collect::<Result<_, SourceError>>()?;
        Ok(Matching { assumptions, by_name: is_by_name.then_some(known) })
    }
}

impl fmt::Debug for Matching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.assumptions.iter().map(ResolvedAssumption::name).collect();
        f.debug_struct("Matching").field("assumed", &names).field("by_name", &self.by_name.is_some()).finish()
    }
}
