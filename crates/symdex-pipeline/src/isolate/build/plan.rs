//! The plan of a build, made by children that read the headers of the debug files.

use std::ffi::OsString;
use std::path::PathBuf;

use super::{BuildFailure, FileImage, PlanTask, Planned, Task, TaskFile, TaskResult};
use crate::isolate::death::ChildError;
use crate::isolate::isolation::Isolation;
use crate::isolate::limits::Access;
use crate::isolate::protocol::Event;

/// The tasks of a build, in the order of the debug files.
#[derive(Debug, Default)]
pub struct Plan {
    /// The tasks. Each can run on its own.
    pub tasks: Vec<Planned>,
    /// How many files are skipped because they have no image of a wanted architecture.
    pub skipped: u64,
    /// What is wrong if all files are skipped.
    pub failure: Option<BuildFailure>,
}

impl Isolation {
    /// Reads the headers of the debug files `found` in a child, and lists the tasks to build them. An error among
    /// `found` becomes a task that has failed.
    ///
    /// If that child ends early, further children find the files at which it ends. These become tasks that have failed.
    ///
    /// # Errors
    ///
    /// [`ChildError`] if no child can be started, or if a child ends early that reads only files of which each has
    /// passed on its own.
    pub fn plan(
        &self,
        found: Vec<Result<TaskFile, BuildFailure>>,
        archs: &[String],
    ) -> Result<Plan, ChildError> {
        let mut found = found;
        let plan = match self.plan_of(&readable(&found), archs) {
            Ok(plan) => plan,
            Err(error @ ChildError::NotStarted { .. }) => return Err(error),
            Err(_) => {
                self.mark_culprits(&mut found, archs)?;
                self.plan_of(&readable(&found), archs)?
            }
        };
        Ok(merged(found, plan))
    }

    /// Replaces each file at which a child ends by the failure. Reads halves of the files that fail together, so that
    /// few bad files among many need few children.
    fn mark_culprits(
        &self,
        found: &mut [Result<TaskFile, BuildFailure>],
        archs: &[String],
    ) -> Result<(), ChildError> {
        match (self.plan_of(&readable(found), archs), found) {
            (Ok(_), _) => Ok(()),
            (Err(error @ ChildError::NotStarted { .. }), _) => Err(error),
            (Err(error), [one]) => {
                if let Ok(file) = one {
                    *one = Err(BuildFailure::of_child(&file.name(), &error));
                }
                Ok(())
            }
            (Err(_), found) => {
                let (first, second) = found.split_at_mut(found.len() / 2);
                self.mark_culprits(first, archs)?;
                self.mark_culprits(second, archs)
            }
        }
    }

    /// The plan of one child for `files`.
    fn plan_of(&self, files: &[&TaskFile], archs: &[String]) -> Result<Plan, ChildError> {
        let mut plan = Plan::default();
        if files.is_empty() {
            return Ok(plan);
        }
        let task = PlanTask { files: files.iter().copied().cloned().collect(), archs: archs.to_vec() };
        let access = files.iter().fold(Access::none(), |access, file| file.readable_in(access));
        self.ask(&Task::Plan(task), &access, |result| match result {
            TaskResult::Planned(task) => plan.tasks.push(task),
            TaskResult::Skipped { files, failure } => (plan.skipped, plan.failure) = (files, failure),
            _ => {}
        })?;
        Ok(plan)
    }

    /// The images of the files at `paths`, as far as they can be read, from the headers of the files. One child reads
    /// them.
    ///
    /// # Errors
    ///
    /// [`ChildError`] if the child cannot be started or ends early.
    pub fn images(&self, paths: &[PathBuf]) -> Result<Vec<FileImage>, ChildError> {
        let mut images = Vec::new();
        if paths.is_empty() {
            return Ok(images);
        }
        let access = paths.iter().fold(Access::none(), Access::read);
        let task = Task::Images(paths.iter().map(OsString::from).collect());
        self.ask(&task, &access, |result| {
            if let TaskResult::Listed(image) = result {
                images.push(image);
            }
        })?;
        Ok(images)
    }

    /// Runs a child that writes no bytes, and calls `each` with its results.
    fn ask(&self, task: &Task, access: &Access, mut each: impl FnMut(TaskResult)) -> Result<(), ChildError> {
        let output = tempfile::tempfile()
            .map_err(|error| ChildError::NotStarted { program: self.program().to_owned(), error })?;
        self.run(task, access, &output, |event| {
            if let Event::Result(result) = event {
                each(result);
            }
        })?;
        Ok(())
    }
}

fn readable(found: &[Result<TaskFile, BuildFailure>]) -> Vec<&TaskFile> {
    found.iter().flatten().collect()
}

/// `plan`, with the failures among `found` in their places.
fn merged(found: Vec<Result<TaskFile, BuildFailure>>, plan: Plan) -> Plan {
    let Plan { tasks, skipped, failure } = plan;
    let mut planned = tasks.into_iter().peekable();
    let mut tasks = Vec::new();
    for found in found {
        match found {
            Ok(file) => {
                while let Some(task) = planned.next_if(|task| task.file.as_ref() == Some(&file)) {
                    tasks.push(task);
                }
            }
            Err(failure) => tasks.push(Planned { file: None, size: 0, part: Err(failure) }),
        }
    }
    tasks.extend(planned);
    Plan { tasks, skipped, failure }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolate::build::PlannedPart;

    fn task(file: Option<&str>) -> Planned {
        Planned { file: file.map(TaskFile::on_disk), size: 0, part: Ok(PlannedPart::default()) }
    }

    #[test]
    fn failures_keep_their_places_among_the_tasks() {
        let failure = BuildFailure {
            file: Some("b".into()),
            kind: "killed".into(),
            limit: None,
            reason: "killed".into(),
            message: "b: killed".into(),
        };
        let [a, skipped, c] = ["a", "skipped", "c"].map(|name| Ok(TaskFile::on_disk(name)));
        let tasks = vec![task(Some("a")), task(Some("c")), task(Some("c")), task(None)];
        let plan = merged(vec![a, skipped, Err(failure), c], Plan { tasks, skipped: 1, failure: None });
        let files: Vec<_> = plan.tasks.into_iter().map(|task| (task.file, task.part.is_ok())).collect();
        let name = |name: &'static str| Some(TaskFile::on_disk(name));
        assert_eq!(
            files,
            [(name("a"), true), (None, false), (name("c"), true), (name("c"), true), (None, true)]
        );
        assert_eq!(plan.skipped, 1);
    }
}
