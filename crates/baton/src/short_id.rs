//! Short ids: the parameters of a call may contain the beginning of an id instead of the whole id, if it is unique.

use baton_app::id::FindIdsOutput;
use baton_core::{IdKind, PartialId};
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
    Ok(())
}

/// Returns the only id that was found.
fn only(short: &PartialId, found: FindIdsOutput) -> Result<String, Failure> {
    let (noun, text) = (short.kind().noun(), short.as_str());
    match found.ids.as_slice() {
        [id] if !found.more => Ok(id.clone()),
        [] => Err(Failure::new(
            Exit::NotFound,
            "not_found",
            format!("there is no {noun} whose id starts with {text}"),
        )
        .hint(match short.kind() {
            IdKind::Session => "list them with: baton session list".to_owned(),
            IdKind::Checkpoint => "list them with: baton checkpoint list --session WORKFLOW".to_owned(),
            _ => format!("list them with: baton {noun} list"),
        })),
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
    fn an_ambiguous_short_id_lists_the_candidates() {
        let failure =
            completed(json!({ "session_id": "sess_01M7" }), &["sess_01M7A", "sess_01M7B"], true).unwrap_err();
        assert_eq!((failure.exit, failure.code.as_str()), (Exit::Validation, "ambiguous_id"));
        assert_eq!(failure.message, "the id sess_01M7 is ambiguous: sess_01M7A, sess_01M7B and more");
    }
}
