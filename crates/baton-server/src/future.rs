//! Futures that other crates await.

use std::future::Future;
use std::pin::Pin;

/// A future whose code is compiled in this crate, and not again in the crate that awaits it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
