//! The closed list of error codes, and the error type of all operations.
//!
//! Owns the codes, their stable names and their status numbers. Each interface maps codes to its own representation,
//! such as MCP results and process exit codes.

use std::error::Error;
use std::fmt;

use serde::Serialize;
use serde_json::Value;
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::wire::wire_names;

/// Kind of error. The names are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[derive(EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ErrorCode {
    /// The body or arguments are not strict JSON.
    InvalidJson,
    /// A field is missing, of the wrong type or outside its limits.
    InvalidRequest,
    /// The `schema_version` is not one that this version reads.
    UnsupportedSchemaVersion,
    /// The operation needs an idempotency key and got none.
    MissingIdempotencyKey,
    /// No credential, or one that is unknown, expired or revoked.
    Unauthorized,
    /// The credential may not access this venture or may not write.
    Forbidden,
    /// The requested item does not exist.
    NotFound,
    /// There is no such session.
    SessionNotFound,
    /// There is no such handoff.
    HandoffNotFound,
    /// There is no such checkpoint.
    CheckpointNotFound,
    /// The checkpoint exists, but its stored data is damaged.
    CheckpointCorrupt,
    /// There is no such task, or it has no context.
    TaskNotFound,
    /// The path exists, the method does not.
    MethodNotAllowed,
    /// The session is no longer active.
    SessionEnded,
    /// The session was ended with another handoff.
    HandoffConflict,
    /// The task has a context already.
    TaskExists,
    /// The state of the task does not allow the operation, for example because another role holds it.
    TaskConflict,
    /// The working tree differs from its snapshot.
    DriftDetected,
    /// The task has an open drift or a blocking finding.
    TaskBlocked,
    /// The body or payload is larger than allowed.
    PayloadTooLarge,
    /// The store is full, and retention cannot delete anything.
    StorageQuotaExceeded,
    /// The idempotency key was used before with other parameters.
    IdempotencyMismatch,
    /// The input appears to contain a secret.
    SecretFound,
    /// Too many requests in a short time.
    RateLimited,
    /// Internal error; the log contains details under the correlation id.
    Internal,
    /// The stored context of a task is damaged or was modified.
    TaskCorrupt,
    /// Git is missing or too old.
    GitUnavailable,
    /// The database cannot be opened, read or written.
    StoreUnavailable,
    /// The database queue is full, or other writers hold the lock of the database.
    Overloaded,
}

wire_names!(ErrorCode);

impl ErrorCode {
    /// All codes, in declaration order.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the HTTP status. The request log and stored responses record it for all interfaces.
    pub const fn status(self) -> u16 {
        match self {
            Self::InvalidJson
            | Self::InvalidRequest
            | Self::UnsupportedSchemaVersion
            | Self::MissingIdempotencyKey => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound
            | Self::SessionNotFound
            | Self::HandoffNotFound
            | Self::CheckpointNotFound
            | Self::TaskNotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::SessionEnded
            | Self::HandoffConflict
            | Self::TaskExists
            | Self::TaskConflict
            | Self::DriftDetected
            | Self::TaskBlocked => 409,
            Self::CheckpointCorrupt => 410,
            Self::PayloadTooLarge | Self::StorageQuotaExceeded => 413,
            Self::IdempotencyMismatch | Self::SecretFound => 422,
            Self::RateLimited => 429,
            Self::Internal | Self::TaskCorrupt | Self::GitUnavailable => 500,
            Self::StoreUnavailable | Self::Overloaded => 503,
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Error of a rejected or failed call. The source is for the log only; everything else is shown to the caller.
#[derive(Debug)]
pub struct Fault {
    /// Kind of error.
    pub code: ErrorCode,
    /// What failed and for which input.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
    /// Machine-readable details.
    pub details: Option<Value>,
    /// Internal cause, for the log only.
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

impl Fault {
    /// Prefixes the message with a file and, without another hint, adds the hint to fix that file.
    #[must_use]
    pub fn in_file(mut self, path: &str) -> Self {
        self.message = format!("{path}: {}", self.message);
        self.hint.get_or_insert_with(|| format!("fix {path} and try again"));
        self
    }

    /// Creates a fault.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, details: None, source: None }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the machine-readable details.
    #[must_use]
    pub fn details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// Sets the cause, for the log only.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Reports every invalid field of these checks at once. A fault that is not about a field is reported alone.
    ///
    /// # Errors
    ///
    /// The fault of the check that failed, or one for all of them.
    pub fn all(checks: impl IntoIterator<Item = Result<(), Self>>) -> Result<(), Self> {
        let mut faults = checks.into_iter().filter_map(Result::err);
        let Some(mut first) = faults.next() else { return Ok(()) };
        for fault in faults {
            let fields = |fault: &Self| Some(fault.details.as_ref()?.get("fields")?.as_array()?.clone());
            match (fields(&first), fields(&fault)) {
                (Some(known), Some(more)) => {
                    first.message = format!("{}; {}", first.message, fault.message);
                    first.hint = first.hint.or(fault.hint);
                    let fields = [known, more].concat();
                    first.details = Some(serde_json::json!({ "fields": fields }));
                }
                (Some(_), None) => return Err(fault),
                (None, _) => break,
            }
        }
        Err(first)
    }

    /// Returns both values, or the errors of both checks as one.
    ///
    /// # Errors
    ///
    /// As for [`all`](Self::all).
    pub fn both<A, B>(first: Result<A, Self>, second: Result<B, Self>) -> Result<(A, B), Self> {
        match (first, second) {
            (Ok(first), Ok(second)) => Ok((first, second)),
            (first, second) => Err(Self::all([first.map(drop), second.map(drop)])
                .err()
                .unwrap_or_else(|| Self::new(ErrorCode::Internal, "a check failed without an error"))),
        }
    }

    /// Checks a field.
    ///
    /// # Errors
    ///
    /// `invalid_request` that names the field if `fits` is false.
    pub fn require(fits: bool, field: &str, problem: impl fmt::Display) -> Result<(), Self> {
        if fits { Ok(()) } else { Err(Self::invalid(field, problem)) }
    }

    /// Creates the fault for a field that is missing, wrong or outside its limits.
    pub fn invalid(field: &str, problem: impl fmt::Display) -> Self {
        let problem = problem.to_string();
        Self::new(ErrorCode::InvalidRequest, format!("{field}: {problem}"))
            .details(serde_json::json!({ "fields": [{ "field": field, "problem": problem }] }))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl Error for Fault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_round_trips_through_its_wire_name() {
        for code in ErrorCode::ALL.iter().copied() {
            assert_eq!(ErrorCode::from_wire(code.as_str()), Some(code));
            assert!((400..=599).contains(&code.status()));
        }
        assert_eq!(ErrorCode::from_wire("nonsense"), None);
    }

    #[test]
    fn every_invalid_field_is_reported_at_once() {
        let invalid = |field: &str| Err(Fault::invalid(field, "is wrong"));
        assert!(Fault::all([Ok(()), Ok(())]).is_ok());
        let one = Fault::all([Ok(()), invalid("a")]).unwrap_err();
        assert_eq!(
            (one.message.as_str(), one.details),
            ("a: is wrong", Fault::invalid("a", "is wrong").details)
        );
        let both = Fault::all([invalid("a"), Ok(()), invalid("b")]).unwrap_err();
        assert_eq!(both.message, "a: is wrong; b: is wrong");
        assert_eq!(both.details.unwrap()["fields"].as_array().unwrap().len(), 2);
        let full = Fault::new(ErrorCode::PayloadTooLarge, "too large");
        assert_eq!(Fault::all([invalid("a"), Err(full)]).unwrap_err().code, ErrorCode::PayloadTooLarge);
    }

    #[test]
    fn the_cause_is_not_in_the_message() {
        let fault = Fault::new(ErrorCode::Internal, "could not store it").caused_by("disk on fire");
        assert!(!fault.to_string().contains("fire"));
        assert!(fault.source().is_some());
    }
}
