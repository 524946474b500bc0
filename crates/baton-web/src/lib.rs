//! The dashboard: pages rendered on the server, their assets, and sign-in with a cookie.
//!
//! A page calls operations through `App::call` like every other interface, so access checks and venture scopes are the
//! same. It has no SQL and no rules. A new page is one file in `pages/` and one line in [`pages`](crate::pages()).
//! Routes, headers and live updates are in `baton-server`.

mod assets;
mod layout;
mod pages;
mod sign_in;
mod visitor;
mod widgets;

pub use assets::{Asset, asset};
pub use layout::{Theme, error_page, page, sign_in_page, signed_in_page};
pub use pages::{ACTIONS, Page, PageContent, pages};
pub use sign_in::{SIGN_IN_DAYS, SignIn, SignInCookie};
pub use visitor::{Problem, Query, Visitor};
