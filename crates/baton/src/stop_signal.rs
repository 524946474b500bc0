//! Stop signals of the process: SIGTERM and SIGINT.

use std::io;

use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Receives SIGTERM and SIGINT from its creation on. Clones see a signal even if they start to wait after it arrived.
#[derive(Debug, Clone)]
pub(crate) struct StopSignal {
    received: watch::Receiver<bool>,
}

impl StopSignal {
    /// Installs the signal handlers.
    pub(crate) fn listen(runtime: &Runtime) -> io::Result<Self> {
        let _entered = runtime.enter();
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let (sender, received) = watch::channel(false);
        runtime.spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            // Fails if all receivers were dropped.
            let _ = sender.send(true);
        });
        Ok(Self { received })
    }

    /// Returns true if a stop signal was received.
    pub(crate) fn is_received(&self) -> bool {
        *self.received.borrow()
    }

    /// Completes when a stop signal was received.
    pub(crate) async fn wait(mut self) {
        if self.received.wait_for(|is_stopping| *is_stopping).await.is_err() {
            std::future::pending().await
        }
    }
}
