//! What clients may take: memory, threads, time, and open files.

mod bodies;
mod body;
mod budget;
mod files;
mod lane;
mod pace;
mod places;
mod workers;
mod written;

pub(crate) use self::bodies::{IsCounted, watch as watch_bodies};
pub(crate) use self::body::{BodyParts, Received};
pub(crate) use self::budget::{Budget, Reserved};
pub(crate) use self::files::connections_that_fit;
pub(crate) use self::lane::{Client, Lane, has_share};
pub(crate) use self::pace::PacedWriter;
pub(crate) use self::places::{Place, Places};
pub(crate) use self::workers::{Workers, current_client, while_waiting};
pub(crate) use self::written::{WrittenAnswer, json_bytes, json_of, json_response};
