//! Operations on tokens, one file per operation, and authentication. The operations are available on the local machine
//! only, not over HTTP or MCP.

mod authenticate;
mod create;
mod list;
mod revoke;
mod view;

pub use authenticate::Authenticator;
pub use create::{CreateToken, CreateTokenOutput, CreateTokenParams};
pub use list::{ListTokens, ListTokensOutput, ListTokensParams};
pub use revoke::{RevokeToken, RevokeTokenOutput, RevokeTokenParams};
pub use view::TokenView;
