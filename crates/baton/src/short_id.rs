//! Short ids: the parameters of a call may contain the beginning of an id instead of the whole id, if it is unique.
//! A text with the prefix of an id that cannot be an id is reported as not found.

use baton_app::id::FindIdsOutput;
use baton_core::observation::TurnId;
use baton_core::{CheckpointId, HandoffId, IdKind, NoteId, ObservationId, PartialId, SessionId};
use serde_json::{Map, Value, json};

use crate::exit::Exit;
use crate::output::Failure;

/// Parameters that contain an id, or ids separated by commas. `sessionId` is not among them: it is the name of a workflow.
const ID_PARAMS: [&str; 12] = [
    "session_id",
    "handoff_id",
    "checkpointId",
    "observation_id",
    "note_id",
    "agentSessionId",
    "session",
    "id",
    "by",
    "ids",
    "from",
    "to",
];

/// Parameters that contain an id of one kind. Operations reject other texts as invalid instead of looking them up.
const TYPED_PARAMS: [&str; 8] = [
    "session_id",
    "handoff_id",
    "observation_id",
    "note_id",
    "agentSessionId",
    "session",
    "turn_id",
    "before",
];

/// Replaces each short id in `params` with the complete id that `find` returns for it.
pub(crate) fn complete(
    params: &mut Map<String, Value>,
    find: impl Fn(&PartialId) -> Result<FindIdsOutput, Failure>,
) -> Result<(), Failure> {
    for name in ID_PARAMS {
        let Some(Value::String(text)) = params.get_mut(name) else { continue };
        let mut ids = Vec::new();
        for part in text.split(',') {
            ids.push(match PartialId::parse(part) {
                Some(short) => only(&short, find(&short)?)?,
                None => part.to_owned(),
            });
        }
        *text = ids.join(",");
    }
    let mut texts = TYPED_PARAMS.into_iter().filter_map(|name| params.get(name).and_then(Value::as_str));
    match texts.find_map(impossible) {
        Some(failure) => Err(failure),
        None => Ok(()),
    }
}

/// Returns the failure for a text that has the prefix of an id but cannot be one.
fn impossible(text: &str) -> Option<Failure> {
    let kind = IdKind::ALL.into_iter().find(|kind| text.starts_with(kind.prefix()));
    let is_valid = match kind {
        Some(IdKind::Session) => text.parse::<SessionId>().is_ok(),
        Some(IdKind::Handoff) => text.parse::<HandoffId>().is_ok(),
        Some(IdKind::Checkpoint) => text.parse::<CheckpointId>().is_ok(),
        Some(IdKind::Note) => text.parse::<NoteId>().is_ok(),
        Some(IdKind::Observation) => text.parse::<ObservationId>().is_ok(),
        None => !text.starts_with("turn_") || text.parse::<TurnId>().is_ok(),
    };
    if is_valid {
        return None;
    }
    let message = format!("there is no {} {text}", kind.map_or("turn", IdKind::noun));
    Some(not_found(message, kind))
}

fn not_found(message: String, kind: Option<IdKind>) -> Failure {
    let hint = match kind {
        Some(IdKind::Session) => "list them with: baton session list".to_owned(),
        Some(IdKind::Checkpoint) => "list them with: baton checkpoint list --session WORKFLOW".to_owned(),
        Some(kind) => format!("list them with: baton {} list", kind.noun()),
        None => "list them with: baton turn list".to_owned(),
    };
    Failure::new(Exit::NotFound, "not_found", message).hint(hint)
}

/// Returns the only id that was found.
fn only(short: &PartialId, found: FindIdsOutput) -> Result<String, Failure> {
    let (noun, text) = (short.kind().noun(), short.as_str());
    match found.ids.as_slice() {
        [id] if !found.more => Ok(id.clone()),
        [] => Err(not_found(format!("there is no {noun} whose id starts with {text}"), Some(short.kind()))),
        ids => {
            let more = if found.more { " and more" } else { "" };
            let message = format!("the id {text} is ambiguous: {}{more}", ids.join(", "));
            let mut failure = Failure::new(Exit::Validation, "ambiguous_id", message)
                .hint(format!("type more characters of the {noun} id"));
            failure.details = Some(json!({ "candidates": ids, "more": found.more }));
            Err(failure)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(params: Value, ids: &[&str], more: bool) -> Result<Value, Failure> {
        let Value::Object(mut params) = params else { panic!("not an object") };
        let found = FindIdsOutput { ids: ids.iter().map(|&id| id.to_owned()).collect(), more };
        complete(&mut params, |_| Ok(found.clone()))?;
        Ok(Value::Object(params))
    }

    #[test]
    fn a_unique_short_id_is_completed_and_other_texts_are_kept() {
        let id = "obs_01M7H3Y790KKJH7PNR0DNVSC3B";
        let params = json!({ "ids": "obs_01M7,turn_42", "text": "note_01M7", "sessionId": "sess_01M7" });
        let expected =
            json!({ "ids": format!("{id},turn_42"), "text": "note_01M7", "sessionId": "sess_01M7" });
        assert_eq!(completed(params, &[id], false).unwrap(), expected);
        let whole = json!({ "observation_id": id });
        assert_eq!(completed(whole.clone(), &[], false).unwrap(), whole);
    }

    #[test]
    fn texts_that_cannot_be_ids_are_not_found() {
        for (name, text, message) in [
            ("handoff_id", "ho_ZZ", "there is no handoff ho_ZZ"),
            ("session_id", "sess_01m7!", "there is no session sess_01m7!"),
            ("session", "sess_", "there is no session sess_"),
            (
                "note_id",
                "note_8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
                "there is no note note_8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
            ),
            ("turn_id", "turn_x", "there is no turn turn_x"),
        ] {
            let failure = completed(json!({ name: text }), &[], false).unwrap_err();
            assert_eq!((failure.exit, failure.message.as_str()), (Exit::NotFound, message));
            assert!(failure.hint.is_some_and(|hint| hint.starts_with("list them with: baton ")), "{text}");
        }
        for (name, text) in
            [("session_id", "nonsense"), ("turn_id", "turn_42"), ("before", "7d"), ("ids", "obs_ZZ")]
        {
            let params = json!({ name: text });
            assert_eq!(completed(params.clone(), &[], false).unwrap(), params);
        }
    }

    #[test]
    fn an_ambiguous_short_id_lists_the_candidates() {
        let failure =
            completed(json!({ "session_id": "sess_01M7" }), &["sess_01M7A", "sess_01M7B"], true).unwrap_err();
        assert_eq!((failure.exit, failure.code.as_str()), (Exit::Validation, "ambiguous_id"));
        assert_eq!(failure.message, "the id sess_01M7 is ambiguous: sess_01M7A, sess_01M7B and more");
    }
}
