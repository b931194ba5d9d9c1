//! Asks the places of indexes in their order. A slow store does not keep the next one waiting for long.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use symdex::{ImageId, ImageOffset};
use symdex_report::{Question, ReportImage, Unanswered};
use symdex_store::{Error, HEDGE_DELAY, HedgedAnswer, HedgedCalls, OpenImage, SharedStore};

use super::found::Place;
use super::session::{Asked, Session, offsets_in, prefetch};
use super::unanswered_by_store;

/// What a store is asked for, on another thread.
struct WantedImage {
    /// The position of the question.
    at: usize,
    id: ImageId,
    image: ReportImage,
    offsets: Vec<ImageOffset>,
}

/// Images that were opened, each with the position of its question.
type Opened = Vec<(usize, Result<Option<OpenImage>, Error>)>;

/// The stores that are asked while others are.
#[derive(Default)]
struct Hedge<'a> {
    calls: HedgedCalls<Opened>,
    /// What the calls are for, by their numbers.
    asked: Vec<HedgedStore<'a>>,
    /// The stores that are too slow to be asked at the same time, and the positions of their questions.
    refused: Vec<(&'a Arc<SharedStore>, BTreeSet<usize>)>,
}

struct HedgedStore<'a> {
    store: &'a Arc<SharedStore>,
    /// The positions of the questions that the store has not answered yet.
    left: BTreeSet<usize>,
    /// Why the next store is asked already.
    late: Option<Unanswered>,
}

impl<'a> Session<'a> {
    /// Asks all places in their order, each for what is not answered yet. If a store has not answered within
    /// [`HEDGE_DELAY`], the next place is asked, and the first of the two that answers is used. At the end, stores that
    /// are late are waited for, if they may have what no other has.
    pub(crate) fn ask_places(&mut self, asked: &mut [&mut Asked<'_>]) {
        let places: Vec<_> = self.symbolicator.places().collect();
        let last_store = places.iter().rposition(|place| matches!(place, Place::Store(_)));
        let mut hedge = Hedge::default();
        for (number, place) in places.into_iter().enumerate() {
            let left = (0..asked.len()).filter(|at| !asked[*at].is_answered).collect();
            let is_last = last_store == Some(number);
            match place {
                Place::Store(store) if !is_last || !hedge.calls.is_empty() => {
                    self.ask_store(store, left, is_last, &mut hedge, asked);
                }
                _ => self.ask_of_place(place, &left, asked),
            }
        }
        while hedge.asked.iter().any(|call| call.is_needed(asked)) {
            if self.take_next(None, &mut hedge, asked).is_none() {
                break;
            }
        }
        for call in hedge.asked {
            note_late(call.late.as_ref(), &call.left, asked);
        }
        for (store, left) in hedge.refused {
            let unanswered = left.iter().copied().filter(|at| !asked[*at].is_answered).collect();
            note_late(Some(&unanswered_by_store(store.unanswered(HEDGE_DELAY))), &left, asked);
            self.ask_of_place(Place::Store(store), &unanswered, asked);
        }
    }

    /// Asks `place` for the images of the questions `left`.
    fn ask_of_place(&mut self, place: Place<'_>, left: &BTreeSet<usize>, asked: &mut [&mut Asked<'_>]) {
        let asked = asked.iter_mut().enumerate().filter(|(at, _)| left.contains(at));
        let mut asked: Vec<_> = asked.map(|(_, asked)| &mut **asked).collect();
        let at_once = match place {
            Place::Store(store) => store.store().images_at_once(),
            _ => 1,
        };
        asked.chunks_mut(at_once).for_each(|some| self.ask_place(place, some));
    }

    /// Asks `store` for the images of the questions `left`, on another thread if the store is needed for that. Returns
    /// when these are answered, by this store or by one that is late, or when `store` is late. The last store may take
    /// its time.
    fn ask_store(
        &mut self,
        store: &'a Arc<SharedStore>,
        left: BTreeSet<usize>,
        is_last: bool,
        hedge: &mut Hedge<'a>,
        asked: &mut [&mut Asked<'_>],
    ) {
        let needs_store = |at: &usize| {
            let Asked { id, question: Question { image, offsets, .. }, .. } = &*asked[*at];
            !store.is_in_memory(id, |metadata| offsets_in(metadata, image, offsets))
                && self.symbolicator.damaged.known(|| store.store().location(id)).is_none()
        };
        let (left, here): (BTreeSet<_>, _) = left.into_iter().partition(needs_store);
        self.ask_of_place(Place::Store(store), &here, asked);
        if left.is_empty() {
            return;
        }
        let wanted = left.iter().map(|at| WantedImage::of(*at, asked[*at])).collect();
        let Some(number) = hedge.calls.begin(store, open_all(wanted)) else {
            hedge.refused.push((store, left));
            return;
        };
        hedge.asked.push(HedgedStore { store, left, late: None });
        let mut deadline = Instant::now() + HEDGE_DELAY;
        while hedge.asked[number].is_needed(asked) {
            match self.take_next((!is_last).then_some(deadline), hedge, asked) {
                // It is slow, but answers.
                Some(answered) if answered == number => deadline = Instant::now() + HEDGE_DELAY,
                Some(_) => {}
                None => {
                    hedge.asked[number].late = hedge.calls.set_late(number).map(unanswered_by_store);
                    return;
                }
            }
        }
    }

    /// Waits for the next answer of any store, and uses it for what is not answered yet. Returns the number of the
    /// call; `None` if there is no answer until `deadline`, or no call runs.
    fn take_next(
        &mut self,
        deadline: Option<Instant>,
        hedge: &mut Hedge<'a>,
        asked: &mut [&mut Asked<'_>],
    ) -> Option<usize> {
        match hedge.calls.next(deadline)? {
            HedgedAnswer::Part(number, opened) => {
                let call = &mut hedge.asked[number];
                for (at, opened) in opened {
                    call.left.remove(&at);
                    let asked = &mut *asked[at];
                    if asked.is_answered {
                        asked.gathered.pass_over(call.late.clone());
                    } else {
                        let found = self.symbolicator.found_in_store(call.store, &asked.id, opened);
                        self.ask_found(Place::Store(call.store), asked, found);
                    }
                }
                Some(number)
            }
            HedgedAnswer::End(number) => {
                let call = &mut hedge.asked[number];
                // Nothing is left, unless the store has panicked.
                for at in std::mem::take(&mut call.left) {
                    if !asked[at].is_answered {
                        let why = format!("{}: asking it has failed", call.store.url());
                        asked[at].add(Err(Unanswered::StoreFailed(why)));
                    }
                }
                Some(number)
            }
        }
    }
}

impl HedgedStore<'_> {
    /// Whether the store may answer a question that no other has answered.
    fn is_needed(&self, asked: &[&mut Asked<'_>]) -> bool {
        self.left.iter().any(|at| !asked[*at].is_answered)
    }
}

impl WantedImage {
    fn of(at: usize, asked: &Asked<'_>) -> Self {
        let Question { image, offsets, .. } = asked.question;
        Self { at, id: asked.id.clone(), image: (*image).clone(), offsets: offsets.to_vec() }
    }
}

/// Opens the images in a store, and fetches the values that answer their offsets, if there are not too many.
fn open_all(
    wanted: Vec<WantedImage>,
) -> impl FnOnce(&Arc<SharedStore>, &mut dyn FnMut(Opened) -> bool) + Send {
    move |store, answer| {
        for wanted in wanted.chunks(store.store().images_at_once()) {
            let opened = store.open_many(&wanted.iter().map(|wanted| wanted.id.clone()).collect::<Vec<_>>());
            let images = wanted.iter().zip(&opened).map(|(wanted, opened)| match opened {
                Ok(Some(image)) => Some((image, &wanted.image, &wanted.offsets[..])),
                _ => None,
            });
            prefetch(store, images);
            if !answer(wanted.iter().map(|wanted| wanted.at).zip(opened).collect()) {
                return;
            }
        }
    }
}

/// Notes that a store was not waited for, for the questions of `left` that others have answered.
fn note_late(why: Option<&Unanswered>, left: &BTreeSet<usize>, asked: &mut [&mut Asked<'_>]) {
    for at in left {
        if asked[*at].is_answered {
            asked[*at].gathered.pass_over(why.cloned());
        }
    }
}
