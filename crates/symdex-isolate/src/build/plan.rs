//! The plan of a build, made by children that read the headers of the debug files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{BuildFailure, PlanTask, Planned, Task, TaskResult};
use crate::death::ChildError;
use crate::isolation::Isolation;
use crate::limits::Access;
use crate::protocol::Event;

/// The tasks of a build, in the order of the debug files.
#[derive(Debug, Default)]
pub struct Plan {
    /// The tasks. Each can run on its own.
    pub tasks: Vec<Planned>,
    /// How many files are skipped because they have no image of a wanted architecture, while other files have one.
    pub skipped: u64,
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
        found: Vec<Result<PathBuf, BuildFailure>>,
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
        found: &mut [Result<PathBuf, BuildFailure>],
        archs: &[String],
    ) -> Result<(), ChildError> {
        match (self.plan_of(&readable(found), archs), found) {
            (Ok(_), _) => Ok(()),
            (Err(error @ ChildError::NotStarted { .. }), _) => Err(error),
            (Err(error), [one]) => {
                if let Ok(file) = one {
                    *one = Err(BuildFailure::of_child(file, &error));
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
    fn plan_of(&self, files: &[&Path], archs: &[String]) -> Result<Plan, ChildError> {
        let mut plan = Plan::default();
        if files.is_empty() {
            return Ok(plan);
        }
        let task = PlanTask { files: files.iter().map(OsString::from).collect(), archs: archs.to_vec() };
        let access = files.iter().fold(Access::none(), |access, file| access.debug_file(file));
        let output = tempfile::tempfile()
            .map_err(|error| ChildError::NotStarted { program: self.program().to_owned(), error })?;
        self.run(&Task::Plan(task), &access, &output, |event| match event {
            Event::Result(TaskResult::Planned(task)) => plan.tasks.push(task),
            Event::Result(TaskResult::Skipped(skipped)) => plan.skipped = skipped,
            Event::Result(TaskResult::Image(_) | TaskResult::Failed(_)) | Event::Progress { .. } => {}
        })?;
        Ok(plan)
    }
}

fn readable(found: &[Result<PathBuf, BuildFailure>]) -> Vec<&Path> {
    found.iter().flatten().map(PathBuf::as_path).collect()
}

/// `plan`, with the failures among `found` in their places.
fn merged(found: Vec<Result<PathBuf, BuildFailure>>, plan: Plan) -> Plan {
    let Plan { tasks, skipped } = plan;
    let mut planned = tasks.into_iter().peekable();
    let mut tasks = Vec::new();
    for found in found {
        match found {
            Ok(file) => {
                while let Some(task) = planned.next_if(|task| task.file.as_deref() == Some(file.as_os_str()))
                {
                    tasks.push(task);
                }
            }
            Err(failure) => tasks.push(Planned { file: failure.file.clone(), size: 0, part: Err(failure) }),
        }
    }
    // The last one says that no file has a wanted architecture.
    tasks.extend(planned);
    Plan { tasks, skipped }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::PlannedPart;

    fn task(file: Option<&str>) -> Planned {
        Planned { file: file.map(OsString::from), size: 0, part: Ok(PlannedPart::default()) }
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
        let found = vec![Ok("a".into()), Ok("skipped".into()), Err(failure), Ok("c".into())];
        let tasks = vec![task(Some("a")), task(Some("c")), task(Some("c")), task(None)];
        let plan = merged(found, Plan { tasks, skipped: 1 });
        let files: Vec<_> = plan.tasks.iter().map(|task| (task.file.as_deref(), task.part.is_ok())).collect();
        let name = |name: &'static str| Some(std::ffi::OsStr::new(name));
        assert_eq!(
            files,
            [(name("a"), true), (name("b"), false), (name("c"), true), (name("c"), true), (None, true)]
        );
        assert_eq!(plan.skipped, 1);
    }
}
