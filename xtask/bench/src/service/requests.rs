//! The requests that are measured.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::json;
use symdex::{Index, Metadata};

use crate::questions::Questions;

/// What the indexes of the service are asked for.
pub struct Asked {
    pub metadata: Metadata,
    pub questions: Questions,
}

/// A `POST` request.
pub struct Request {
    pub name: &'static str,
    pub path: &'static str,
    pub content_type: &'static str,
    pub body: Vec<u8>,
}

impl Request {
    /// The bytes of the request.
    pub fn bytes(&self) -> Vec<u8> {
        let Self { path, content_type, body, .. } = self;
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: {content_type}\r\n\
             content-length: {length}\r\nconnection: close\r\n\r\n"
        );
        [head.as_bytes(), body].concat()
    }
}

impl Asked {
    /// Draws the questions for an index.
    ///
    /// # Errors
    /// The index is damaged.
    pub fn of(index: &Path) -> Result<Self> {
        let index = Index::open_file(index)?;
        Ok(Self { metadata: index.metadata().clone(), questions: Questions::of(&index)? })
    }

    fn name(&self, number: usize) -> String {
        format!("Image{number}")
    }
}

/// A request of each kind, with 100 frames or addresses of all images in turn.
///
/// # Errors
/// There are no images.
pub fn all(asked: &[Asked]) -> Result<Vec<Request>> {
    asked.first().context("no images")?;
    let of_image = |number: usize| asked[number].questions.report.iter().skip(number).step_by(asked.len());
    let lookup = asked.iter().enumerate().map(|(number, asked)| {
        let addresses: Vec<_> = of_image(number).map(|offset| format!("{offset:#x}")).collect();
        json!({"id": asked.metadata.id.to_string(), "addresses": addresses})
    });
    let lookup = serde_json::to_vec(&lookup.collect::<Vec<_>>())?;
    let images = asked.iter().enumerate();
    let memory_map = images.map(|(number, asked)| json!([asked.name(number), breakpad_id(&asked.metadata)]));
    let memory_map: Vec<_> = memory_map.collect();
    let stack: Vec<_> = frames(asked, 100).map(|(number, offset)| json!([number, offset])).collect();
    let v5 = json!({"jobs": [{"memoryMap": memory_map, "stacks": [stack]}]});
    let request = |name, path, content_type, body| Request { name, path, content_type, body };
    let json = "application/json";
    Ok(vec![
        request("report of 100 frames", "/v1/symbolicate", "text/plain", report(asked, 100)),
        request("100 addresses", "/v1/lookup", json, lookup),
        request("stack of 100 frames", "/symbolicate/v5", json, serde_json::to_vec(&v5)?),
    ])
}

/// `count` frames: the images in turn, with the offsets of their reports, and then with others.
fn frames(asked: &[Asked], count: usize) -> impl Iterator<Item = (usize, u64)> {
    (0..count).map(move |frame| {
        let Questions { report, uniform, .. } = &asked[frame % asked.len()].questions;
        let offset = report.get(frame).unwrap_or_else(|| &uniform[frame % uniform.len()]);
        (frame % asked.len(), *offset)
    })
}

/// A `.crash` with one thread of `count` frames.
fn report(asked: &[Asked], count: usize) -> Vec<u8> {
    let base = |number: usize| 0x1_0000_0000 + ((number as u64) << 32);
    let mut text =
        String::from("Process:             App [1]\nCode Type:           ARM-64\n\nThread 0 Crashed:\n");
    // Writing to a string does not fail.
    for (at, (number, offset)) in frames(asked, count).enumerate() {
        let (name, base) = (asked[number].name(number), base(number));
        let _ = writeln!(text, "{at:<3} {name:<30}\t{:#018x} {base:#x} + {offset}", base + offset);
    }
    text += "\nBinary Images:\n";
    for (number, asked) in asked.iter().enumerate() {
        let (name, base) = (asked.name(number), base(number));
        let Metadata { id, arch, .. } = &asked.metadata;
        let end = base + 0xffff_ffff;
        let _ = writeln!(text, "{base:#x} - {end:#x} {name} {} <{id}> /App/{name}", arch.name);
    }
    text.into_bytes()
}

/// The id as Breakpad writes that of a Mach-O image: the UUID and an age of 0.
fn breakpad_id(metadata: &Metadata) -> String {
    metadata.id.to_string().to_uppercase() + "0"
}
