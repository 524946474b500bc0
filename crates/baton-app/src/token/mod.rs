//! Operations on tokens, one file per operation, and authentication. The operations are available on the local machine
//! only, not over HTTP or MCP.

mod authenticate;
mod create;
mod list;
mod revoke;
mod view;

pub use authenticate::Authenticator;
pub use create::{CreateToken, CreateTokenOutput};
pub use list::{ListTokens, ListTokensOutput};
pub use revoke::{RevokeToken, RevokeTokenOutput};
pub use view::TokenView;
