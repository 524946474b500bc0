//! Names that every operation uses.

pub(crate) use baton_core::Fault;
pub(crate) use baton_store::Tx;
pub(crate) use schemars::JsonSchema;
pub(crate) use serde::{Deserialize, Serialize};

pub(crate) use crate::context::Context;
pub(crate) use crate::operation::{
    Effect, KeyUse, OnStore, Operation, Privacy, ReplayFirst, RequestFormat, RequestLogging, Spooling,
    erased, params_and, params_as_input,
};
