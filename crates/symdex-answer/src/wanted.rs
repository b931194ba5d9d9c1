//! Which id answers an image of a report.

use std::collections::BTreeSet;

use symdex::ImageId;
use symdex_report::{KnownImage, MatchedBy, ReportImage, Unanswered, match_by_name};
use symdex_store::IdPrefix;

use super::known::known_of;
use super::{Matching, Symbolicator, unanswered_by_store};

/// What is known of the id that answers an image, before stores are asked.
enum StatedId {
    Whole(ImageId, MatchedBy),
    /// The report states only the start of the id.
    Start(ImageId),
}

impl Symbolicator {
    /// The ids to search for `images`, and how each was chosen. `matching` replaces the symbolicator's own assumptions.
    pub(crate) fn wanted(
        &self,
        images: &[&ReportImage],
        matching: Option<&Matching>,
    ) -> Vec<Result<(ImageId, MatchedBy), Unanswered>> {
        let stated: Vec<_> = images.iter().map(|image| self.stated(image, matching)).collect();
        let starts = images.iter().zip(&stated).filter_map(|(image, stated)| match stated {
            Ok(StatedId::Start(start)) => Some((*image, start.clone())),
            _ => None,
        });
        let mut whole = self.whole_ids(&starts.collect::<Vec<_>>()).into_iter();
        let wanted = |stated| match stated? {
            StatedId::Whole(id, matched) => Ok((id, matched)),
            StatedId::Start(start) => Ok((whole.next().unwrap_or(Ok(start))?, MatchedBy::Id)),
        };
        stated.into_iter().map(wanted).collect()
    }

    fn stated(&self, image: &ReportImage, matching: Option<&Matching>) -> Result<StatedId, Unanswered> {
        let assumptions = matching.map_or(&self.assumptions, |matching| &matching.assumptions);
        let assumptions = assumptions.iter().filter(|assumption| assumption.applies_to(image));
        let mut assumed: Vec<_> = assumptions.map(|assumption| assumption.id_for(image)).collect();
        // If several assumptions have one name, the first that fits is used.
        assumed.sort_by_key(Result::is_err);
        if let Some(id) = assumed.into_iter().next().transpose()? {
            let is_same = image.id.as_ref() == Some(id);
            let matched = if is_same { MatchedBy::Id } else { MatchedBy::Assumed };
            return Ok(StatedId::Whole(id.clone(), matched));
        }
        match &image.id {
            Some(start) if image.is_id_cut => Ok(StatedId::Start(start.clone())),
            Some(id) => Ok(StatedId::Whole(id.clone(), MatchedBy::Id)),
            None => {
                let known = match matching {
                    Some(matching) => matching.by_name.clone(),
                    None => self.match_by_name.then(|| self.known()),
                };
                let id = match_by_name(image, &known.ok_or(Unanswered::Missing)?)?.id.clone();
                Ok(StatedId::Whole(id, MatchedBy::Name))
            }
        }
    }

    /// The one id of all sources that begins with each of `starts`. This is the start itself if there is none. Each
    /// store is asked for all of them together.
    fn whole_ids(&self, starts: &[(&ReportImage, ImageId)]) -> Vec<Result<ImageId, Unanswered>> {
        if starts.is_empty() {
            return Vec::new();
        }
        let ids: Vec<_> = starts.iter().map(|(_, start)| start.clone()).collect();
        let mut found: Vec<_> = ids.iter().map(|start| (self.ids_in_debug_files(start), None)).collect();
        for store in self.sources() {
            for ((found, first_error), of_store) in found.iter_mut().zip(store.ids_from(&ids)) {
                match of_store {
                    Ok(ids) => found.extend(ids.iter().cloned()),
                    Err(error) => _ = first_error.get_or_insert(error),
                }
            }
        }
        let whole = |((image, start), (mut ids, first_error)): (
            &(&ReportImage, ImageId),
            (BTreeSet<_>, _),
        )| match (ids.len(), first_error) {
            (0, Some(error)) => Err(unanswered_by_store(error)),
            (0 | 1, _) => Ok(ids.pop_first().unwrap_or_else(|| start.clone())),
            _ => {
                let known = |id: &ImageId| self.known_image(id, image);
                Err(Unanswered::ambiguous(&ids.iter().map(known).collect::<Vec<_>>()))
            }
        };
        starts.iter().zip(found).map(whole).collect()
    }

    /// The ids in debug files that begin with `start`.
    fn ids_in_debug_files(&self, start: &ImageId) -> BTreeSet<ImageId> {
        let prefix = IdPrefix::from(start);
        self.debug_files().known().map(|known| known.id).filter(|id| prefix.matches(id)).collect()
    }

    /// What is known of the image `id`, for messages. If its sources cannot be read, it has the name of `image`.
    fn known_image(&self, id: &ImageId, image: &ReportImage) -> KnownImage {
        let known = self.find(id).flatten().map(|index| known_of(index.metadata().clone())).next();
        known.or_else(|| Some(self.debug_files().image(id)?.known())).unwrap_or_else(|| {
            let arch = image.arch.as_ref().map(|arch| arch.name.clone()).unwrap_or_default();
            KnownImage { name: image.name.clone(), id: id.clone(), arch }
        })
    }
}
