//! The machine of this process, for operations that show more than the store contains.

use std::path::Path;
use std::sync::Arc;

use baton_app::Machine;
use baton_app::agent::ListAgentsOutput;
use baton_app::task::TaskFiles;
use baton_core::task::TaskId;
use baton_core::{ErrorCode, Fault};

use crate::config::Config;
use crate::connections::{Probe, connections};
use crate::host::host;
use crate::tasks::task_files;

/// The machine of this process.
#[derive(Debug)]
pub(crate) struct ThisMachine {
    config: Config,
}

impl ThisMachine {
    pub(crate) fn new(config: &Config) -> Arc<Self> {
        Arc::new(Self { config: config.clone() })
    }
}

impl Machine for ThisMachine {
    fn host(&self) -> String {
        host()
    }

    fn task_files(&self, checkout: &Path, id: &TaskId) -> Result<TaskFiles, Fault> {
        task_files(checkout, id, &self.config)
    }

    fn agents(&self, probe: bool) -> Result<ListAgentsOutput, Fault> {
        let probe = if probe { Probe::Programs } else { Probe::Files };
        connections(&self.config, probe).map_err(|failure| {
            Fault::new(ErrorCode::Internal, failure.message).hint("set HOME, then try again")
        })
    }
}
