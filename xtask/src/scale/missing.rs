//! What images without an index cost in an object store: computed, not simulated.

use super::Fleet;

/// How long a server remembers that an image is missing, and how long it uses a list of the store.
const SECONDS_REMEMBERED: f64 = 60.0;
/// A list is made if it has at most a page for so many missing images.
const MISSING_PER_PAGE: f64 = 16.0;
/// The objects of a page.
const PAGE: u64 = 1_000;
/// A list of more pages is made of the lists of so many subfolders.
const SEQUENTIAL_PAGES: u64 = 256;
const SUBFOLDERS: u64 = 257;

/// The requests of all servers for missing images, in a second.
pub(crate) struct Missing {
    /// If each image is asked for.
    pub(crate) gets: f64,
    /// The pages of lists, if the store is listed instead. `None` if that is not worth it.
    pub(crate) pages: Option<f64>,
}

impl Missing {
    /// The missing images of all reports are `distinct` ones, drawn by the law of the images that are there. A server
    /// asks for each that its reports of a minute name.
    pub(crate) fn of(fleet: &Fleet, distinct: u64) -> Self {
        let reports = fleet.reports_per_second / fleet.servers as f64 * SECONDS_REMEMBERED;
        let draws = reports * fleet.missing_per_report as f64;
        let weight = |rank: u64| (rank as f64).powf(-fleet.image_exponent);
        let all_weights: f64 = (1..=distinct).map(weight).sum();
        let asked: f64 = (1..=distinct).map(|rank| 1.0 - (-draws * weight(rank) / all_weights).exp()).sum();
        let of_all = fleet.servers as f64 / SECONDS_REMEMBERED;
        let pages = pages(fleet.images) as f64;
        Self { gets: asked * of_all, pages: (asked >= MISSING_PER_PAGE * pages).then_some(pages * of_all) }
    }
}

/// The pages of a list of `objects`.
fn pages(objects: u64) -> u64 {
    match objects / PAGE + 1 {
        pages if pages <= SEQUENTIAL_PAGES => pages,
        _ => SUBFOLDERS * (objects / SUBFOLDERS / PAGE + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_replaces_requests_only_if_it_has_few_pages() {
        let mut fleet = Fleet { images: 5_000, servers: 1, reports_per_second: 1_000.0, ..Fleet::default() };
        let missing = Missing::of(&fleet, 600);
        assert!((9.9..=10.0).contains(&missing.gets), "each image once a minute: {}", missing.gets);
        assert_eq!(missing.pages, Some(0.1), "six pages a minute");
        fleet.images = 300_000;
        assert!(Missing::of(&fleet, 600).pages.is_none());
        assert_eq!((pages(0), pages(255_999), pages(300_000)), (1, 256, 514));
    }
}
