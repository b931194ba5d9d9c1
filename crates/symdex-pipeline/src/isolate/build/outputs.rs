//! The build of one task in a child, and the indexes that it wrote.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use symdex::{Index, MappedFile};

use super::{BuildFailure, BuildTask, BuiltImage, Task, TaskResult};
use crate::isolate::confine::Protections;
use crate::isolate::death::ChildError;
use crate::isolate::isolation::Isolation;
use crate::isolate::protocol::Event;

/// What a child has built.
#[derive(Debug)]
pub struct BuildOutputs {
    /// The images of the debug file, in file order. If the child has ended early, the last one says why.
    pub images: Vec<Result<BuildOutput, BuildFailure>>,
    /// Which limits were in force; `None` if the child has ended early.
    pub protections: Option<Protections>,
}

/// An index that a child has built. All of it was checked, so that [`Index::open`] succeeds.
#[derive(Debug)]
pub struct BuildOutput {
    /// What the child says of it.
    pub image: BuiltImage,
    /// The bytes of the index.
    pub index: IsolatedIndex,
}

/// The bytes of an index: a part of a temporary file without a name, mapped into memory.
#[derive(Clone, Debug)]
pub struct IsolatedIndex {
    file: Arc<MappedFile>,
    range: Range<usize>,
}

impl AsRef<[u8]> for IsolatedIndex {
    fn as_ref(&self) -> &[u8] {
        // The range was checked when this was made.
        self.file.get(self.range.clone()).unwrap_or_default()
    }
}

impl Isolation {
    /// Builds the indexes of `task` in a child, and checks them. `progress` gets what the child reports meanwhile.
    ///
    /// The child writes to a temporary file in `folder`, which is created if it does not exist. The file has no name
    /// where the system has such files, so that nothing is left of it when this process is killed. `folder` is usually
    /// the one in which the indexes are published, so that the space they need is there. The child cannot open anything
    /// in it.
    pub fn build(
        &self,
        task: &BuildTask,
        folder: &Path,
        progress: impl FnMut(Event<&TaskResult>),
    ) -> BuildOutputs {
        let name = task.file.name();
        let file = Path::new(&name);
        let output = fs::create_dir_all(folder).and_then(|()| tempfile::tempfile_in(folder));
        let output = match output {
            Ok(output) => output,
            Err(error) => {
                let failure = failed(folder, "other", format!("cannot write a temporary file: {error}"));
                return BuildOutputs { images: vec![Err(failure)], protections: None };
            }
        };
        let (results, ended) = self.results(task, &output, progress);
        let mut images = match Outputs::new(output) {
            Ok(mut outputs) => results.into_iter().filter_map(|result| outputs.next(result, file)).collect(),
            Err(error) => vec![Err(failed(file, "other", format!("cannot read its index: {error}")))],
        };
        let protections = ended.map_err(|error| images.push(Err(BuildFailure::of_child(&name, &error)))).ok();
        BuildOutputs { images, protections }
    }

    fn results(
        &self,
        task: &BuildTask,
        output: &File,
        mut progress: impl FnMut(Event<&TaskResult>),
    ) -> (Vec<TaskResult>, Result<Protections, ChildError>) {
        let mut results = Vec::new();
        let files = task.part.group.iter().chain([&task.file]);
        let isolation = self.with_file_size(files.map(|file| Path::new(&file.path)));
        let ended =
            isolation.run(
                &Task::Build(Box::new(task.clone())),
                &task.access(),
                output,
                |event| match event {
                    Event::Progress { size, done, total } => progress(Event::Progress { size, done, total }),
                    Event::Result(result) => {
                        progress(Event::Result(&result));
                        results.push(result);
                    }
                },
            );
        (results, ended)
    }
}

/// The output of a child, which consists of the indexes in the order of its results.
struct Outputs {
    /// `None` if it is empty. An empty file cannot be mapped everywhere.
    file: Option<Arc<MappedFile>>,
    /// The end of the last index.
    end: usize,
}

impl Outputs {
    /// The output in `file`. The child has ended, so that nobody changes it.
    fn new(file: File) -> io::Result<Self> {
        let file = match file.metadata()?.len() {
            0 => None,
            _ => Some(Arc::new(symdex::map_open_file(&file)?)),
        };
        Ok(Self { file, end: 0 })
    }

    /// The index or the failure that `result` reports. `None` for another result.
    fn next(&mut self, result: TaskResult, file: &Path) -> Option<Result<BuildOutput, BuildFailure>> {
        match result {
            TaskResult::Failed(failure) => Some(Err(failure)),
            TaskResult::Image(image) => Some(
                self.index(&image)
                    .map(|index| BuildOutput { image, index })
                    .map_err(|what| failed(file, "other", format!("the child's index is not used: {what}"))),
            ),
            TaskResult::Planned(_)
            | TaskResult::Skipped { .. }
            | TaskResult::Found { .. }
            | TaskResult::Listed(_) => None,
        }
    }

    fn index(&mut self, image: &BuiltImage) -> Result<IsolatedIndex, String> {
        let length = usize::try_from(image.index_size).map_err(|error| error.to_string())?;
        let start = self.end;
        let range = start..start.checked_add(length).ok_or("its size overflows")?;
        let file = self.file.as_ref().filter(|file| range.end <= file.len());
        let file = Arc::clone(file.ok_or("it is not in the child's output")?);
        self.end = range.end;
        let bytes = IsolatedIndex { file, range };
        let index = Index::open(&bytes).map_err(|error| error.to_string())?;
        index.verify().map_err(|error| error.to_string())?;
        match index.id().to_string() {
            id if id == image.id => Ok(bytes),
            id => Err(format!("it is the index of {id}, not of {}", image.id)),
        }
    }
}

fn failed(path: &Path, kind: &str, what: String) -> BuildFailure {
    BuildFailure {
        file: Some(path.into()),
        kind: kind.to_owned(),
        limit: None,
        reason: kind.to_owned(),
        message: format!("{}: {what}", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::isolate::build::Coverage;

    fn image(id: &str, index_size: usize) -> BuiltImage {
        BuiltImage {
            id: id.to_owned(),
            file: "a".into(),
            joined: Vec::new(),
            debug_size: 0,
            index_size: index_size as u64,
            warnings: Vec::new(),
            has_dwarf: false,
            failed_units: 0,
            dropped: Default::default(),
            hidden_names: 0,
            coverage: Coverage { executable: 0, dwarf: 0, dwarf_function: 0, symbol_table: 0 },
            verified: None,
            time: Default::default(),
        }
    }

    #[test]
    fn only_whole_indexes_of_the_stated_image_are_used() {
        let index = fs::read("../../testdata/golden/v1/inline-dwarf4-1.symdex").expect("an index");
        let id = Index::open(&index[..]).expect("an index").id().to_string();
        let mut damaged = index.clone();
        *damaged.last_mut().expect("bytes") ^= 1;
        let mut file = tempfile::tempfile().expect("a file");
        [&index, &damaged, &index].into_iter().for_each(|bytes| file.write_all(bytes).expect("written"));
        let mut outputs = Outputs::new(file).expect("mapped");
        let mut next =
            |id: &str, size: usize| match outputs.next(TaskResult::Image(image(id, size)), "a".as_ref()) {
                Some(Ok(output)) => output.index.as_ref().len().to_string(),
                Some(Err(failure)) => failure.message,
                None => panic!("a result"),
            };
        assert_eq!(next(&id, index.len()), index.len().to_string());
        let message = next(&id, index.len());
        assert!(message.starts_with("a: the child's index is not used: "), "{message}");
        assert!(next("00", index.len()).contains(&format!("the index of {id}, not of 00")));
        assert!(next(&id, 1).contains("not in the child's output"));
    }

    #[test]
    fn a_child_that_wrote_nothing_has_no_index() {
        let mut outputs = Outputs::new(tempfile::tempfile().expect("a file")).expect("empty");
        assert!(outputs.index(&image("00", 0)).is_err());
    }
}
