//! Tests on the corpora: real debug files and reports, and hostile ones, which are not in the repository.

pub(crate) mod companions;
pub(crate) mod count;
pub(crate) mod crashdx;
pub(crate) mod crashprobe;
pub(crate) mod golden;
pub(crate) mod hostile;
pub(crate) mod kscrash;
pub(crate) mod made_up;
pub(crate) mod native_reports;
pub(crate) mod profiles;
pub(crate) mod real_reports;
pub(crate) mod report_corpora;
pub(crate) mod text_output;
