//! Tests that need nothing besides the repository.

mod api;
mod apple_text;
mod bugsnag;
mod call_tree;
mod common;
mod documents;
mod formats;
mod hostile;
mod ips;
mod kscrash;
mod limits;
mod matching;
mod metrickit;
mod native;
mod pasted;
mod plcrashreporter;
mod render;
mod rules;
mod source;
mod twice;
mod unread;
mod view;
