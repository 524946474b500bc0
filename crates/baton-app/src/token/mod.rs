//! Operations on tokens, one file a verb, and how a credential becomes an actor. They are for the person at the
//! machine: no face on the network offers them.

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
