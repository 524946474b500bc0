//! Being asked to stop.

use std::io;

use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Hears SIGTERM and SIGINT from the moment it is made. Clones hear the same, however late they begin to listen.
#[derive(Debug, Clone)]
pub(crate) struct StopSignal {
    told: watch::Receiver<bool>,
}

impl StopSignal {
    /// Begins to listen.
    pub(crate) fn listen(runtime: &Runtime) -> io::Result<Self> {
        let _entered = runtime.enter();
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let (tell, told) = watch::channel(false);
        runtime.spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            // Nobody may be left who listens.
            let _ = tell.send(true);
        });
        Ok(Self { told })
    }

    /// Is over when the process was asked to stop.
    pub(crate) async fn heard(mut self) {
        if self.told.wait_for(|told| *told).await.is_err() {
            std::future::pending().await
        }
    }
}
