//! A service that answers crash addresses over TCP, from a folder of indexes.
//!
//! ```text
//! cargo run --example service -- indexes 127.0.0.1:7000
//! ```
//!
//! A request is a line `<image id> <offset>`, the offset in hexadecimal. The answer is a line for each frame,
//! innermost first, `<name> <file>:<line>`, and an empty line after the last:
//!
//! ```text
//! $ echo 4c4c4479-5555-3144-a170-308419376afa 5d0 | nc -q1 127.0.0.1 7000
//! ```

use std::collections::HashMap;
use std::error::Error;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use symdex::{ImageId, ImageOffset, Index, LinePolicy, Scratch};

/// The longest request. A longer one ends the connection.
const MAX_REQUEST: u64 = 256;

/// An open index, shared by any number of threads.
type Shared = Arc<Index<Vec<u8>>>;

/// The indexes of earlier requests, each read once.
struct Indexes {
    folder: PathBuf,
    open: Mutex<HashMap<ImageId, Shared>>,
}

impl Indexes {
    /// Returns the index of the image `id`, or `None` if the folder has none.
    fn get(&self, id: &ImageId) -> Result<Option<Shared>, Box<dyn Error>> {
        let mut open = self.open.lock().map_err(|_| "another request failed while it opened an index")?;
        if let Some(index) = open.get(id) {
            return Ok(Some(Arc::clone(index)));
        }
        // The id was parsed: its text is made of hexadecimal digits and cannot lead out of the folder.
        let bytes = match std::fs::read(self.folder.join(format!("{id}.symdex"))) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes?,
        };
        let index = Arc::new(Index::open(bytes)?);
        if index.id() != id {
            return Err(format!("the file is the index of {}", index.id()).into());
        }
        open.insert(id.clone(), Arc::clone(&index));
        Ok(Some(index))
    }
}

/// Answers one request to `out`.
fn answer(
    request: &str,
    indexes: &Indexes,
    scratch: &mut Scratch,
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    let (id, offset) = request.split_once(' ').ok_or("expected `<image id> <offset>`")?;
    let offset = u64::from_str_radix(offset.trim_start_matches("0x"), 16)?;
    let Some(index) = indexes.get(&id.parse()?)? else { return Err("no index of this image".into()) };
    let Some(frames) = index.lookup(ImageOffset(offset), LinePolicy::Statement, scratch)? else {
        return Err("no code that is known".into());
    };
    for frame in frames.iter() {
        let (name, file) = (frame.name_lossy().unwrap_or_default(), frame.file_lossy().unwrap_or_default());
        writeln!(out, "{name} {file}:{}", frame.line.unwrap_or_default())?;
    }
    Ok(())
}

/// Answers a connection's requests, line by line.
fn serve(connection: &TcpStream, indexes: &Indexes) -> std::io::Result<()> {
    // The scratch space caches answers. Each thread has one.
    let mut scratch = Scratch::default();
    let (mut requests, mut out) = (BufReader::new(connection), BufWriter::new(connection));
    loop {
        let mut request = String::new();
        let size = std::io::Read::take(&mut requests, MAX_REQUEST).read_line(&mut request)?;
        if size == 0 || size as u64 == MAX_REQUEST {
            return Ok(());
        }
        if let Err(error) = answer(request.trim(), indexes, &mut scratch, &mut out) {
            writeln!(out, "error: {error}")?;
        }
        writeln!(out)?;
        out.flush()?;
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [folder, address] = args.as_slice() else {
        return Err("usage: service <folder of indexes> <address to listen on>".into());
    };
    let indexes = Indexes { folder: folder.into(), open: Mutex::default() };
    let listener = TcpListener::bind(address)?;
    std::thread::scope(|threads| {
        for connection in listener.incoming() {
            let connection = connection?;
            let indexes = &indexes;
            threads.spawn(move || {
                if let Err(error) = serve(&connection, indexes) {
                    eprintln!("a connection ended early: {error}");
                }
            });
        }
        Ok(())
    })
}
