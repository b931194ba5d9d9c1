//! The verbs that stand in for other tools, beside these tools and under their clients.

pub(crate) mod clients;
pub(crate) mod compared;
pub(crate) mod data;
pub(crate) mod gnu;
pub(crate) mod input;
pub(crate) mod llvm;
pub(crate) mod modes;
