//! Blocking work in async code, and async code without a runtime.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use tokio::sync::oneshot;

/// Runs blocking work on a new thread. Returns `None` if the thread could not be started or panicked.
pub(crate) async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = oneshot::channel();
    let spawned = thread::Builder::new().name("baton-call".into()).spawn(move || {
        // The caller may have disconnected.
        let _ = sender.send(work());
    });
    if let Err(error) = spawned {
        tracing::error!(%error, "cannot start a thread");
    }
    receiver.await.ok()
}

/// Polls a future on the current thread until it is ready.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
