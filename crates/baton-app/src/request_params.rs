//! Parameters of a request, from a strict JSON body, the query and the path.

use std::collections::BTreeMap;

use baton_core::{ErrorCode, Fault, JsonErrorKind, integral, read_strict, read_with_canonical_member};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Map, Value};

/// Type of a parameter that is not text, but is sent as text in a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Literal {
    Integer,
    Boolean,
}

/// Returns the parameters of an operation that are not text.
pub fn literal_params(schema: &Value) -> BTreeMap<String, Literal> {
    let is = |kind: &Value, wanted: &str| match kind {
        Value::String(kind) => kind == wanted,
        Value::Array(kinds) => kinds.iter().any(|kind| kind == wanted),
        _ => false,
    };
    let literal = |property: &Value| {
        let kind = property.get("type")?;
        let integer = is(kind, "integer").then_some(Literal::Integer);
        integer.or_else(|| is(kind, "boolean").then_some(Literal::Boolean))
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.into_iter().flatten();
    properties.filter_map(|(name, property)| Some((name.clone(), literal(property)?))).collect()
}

/// Parses a JSON body.
///
/// The member `context_param`, if it is an object, is returned as canonical text instead of a parsed value.
pub fn from_body(
    body: &[u8],
    context_param: Option<&str>,
) -> Result<(Map<String, Value>, Option<String>), Fault> {
    let read = match context_param {
        Some(name) => read_with_canonical_member(body, name),
        None => read_strict(body).map(|value| (value, None)),
    };
    let (value, context) = read.map_err(|error| {
        let hint = match error.kind {
            JsonErrorKind::Empty => "send a JSON object as the body",
            _ => "send one strict JSON object: no duplicate keys, no nesting over 64, nothing after it",
        };
        match (&error.kind, context_param) {
            (JsonErrorKind::IntegerWouldRound(_), Some(name)) if error.path.starts_with(name) => {
                Fault::invalid(&error.path, &error.kind)
            }
            _ => {
                let details =
                    serde_json::json!({ "line": error.line, "column": error.column, "path": error.path });
                Fault::new(ErrorCode::InvalidJson, error.to_string()).hint(hint).details(details)
            }
        }
    })?;
    match value {
        Value::Object(map) => Ok((map, context)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(Fault::new(ErrorCode::InvalidRequest, "the body must be a JSON object"))
        }
    }
}

/// Parses the query of an address.
pub fn from_query(query: &str, literals: &BTreeMap<String, Literal>) -> Result<Map<String, Value>, Fault> {
    let (mut params, mut checks) = (Map::new(), Vec::new());
    // In a query `+` is a space; a literal plus is sent as `%2B`.
    for pair in query.replace('+', " ").split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (decode(name)?, decode(value)?);
        checks.push(insert(&mut params, name, value, literals));
    }
    Fault::all(checks)?;
    Ok(params)
}

/// Converts the fields of an HTML form. `a.b` is the member `b` of the object `a`, and `a[]` is a list with one element for
/// each line. Empty fields are left out.
pub fn form_params(
    form: Map<String, Value>,
    literals: &BTreeMap<String, Literal>,
) -> Result<Map<String, Value>, Fault> {
    let mut params = Map::new();
    for (name, value) in form {
        let Some(text) = value.as_str().map(str::trim).filter(|text| !text.is_empty()) else { continue };
        let (path, is_list) = name.strip_suffix("[]").map_or((name.as_str(), false), |path| (path, true));
        let (object, member) =
            path.split_once('.').map_or((None, path), |(object, member)| (Some(object), member));
        let target = match object {
            None => &mut params,
            Some(object) => {
                let nested = params.entry(object).or_insert_with(|| Value::Object(Map::new()));
                nested.as_object_mut().ok_or_else(|| Fault::invalid(object, "must be given only once"))?
            }
        };
        if is_list {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            target.insert(member.to_owned(), lines.collect::<Vec<_>>().into());
        } else {
            insert(target, member.to_owned(), text.to_owned(), literals)?;
        }
    }
    Ok(params)
}

/// Adds the parameters of the path. A parameter that is also given elsewhere is an error.
pub fn add_path(
    params: &mut Map<String, Value>,
    path: impl IntoIterator<Item = (String, String)>,
    literals: &BTreeMap<String, Literal>,
) -> Result<(), Fault> {
    path.into_iter().try_for_each(|(name, value)| insert(params, name, value, literals))
}

fn insert(
    params: &mut Map<String, Value>,
    name: String,
    value: String,
    literals: &BTreeMap<String, Literal>,
) -> Result<(), Fault> {
    let literal = match (literals.get(&name), value.as_str()) {
        (None, _) => None,
        (Some(Literal::Integer), text) => {
            let number: Option<i64> = text.parse().ok().or_else(|| text.parse().ok().and_then(integral));
            number.map(Value::from)
        }
        (Some(Literal::Boolean), "true" | "1" | "") => Some(Value::Bool(true)),
        (Some(Literal::Boolean), "false" | "0") => Some(Value::Bool(false)),
        (Some(Literal::Boolean), _) => None,
    };
    // Text that is not of the expected type stays text: the operation reports it together with all other invalid fields.
    let value = literal.unwrap_or(Value::String(value));
    if params.contains_key(&name) {
        return Err(Fault::invalid(&name, "must be given only once"));
    }
    params.insert(name, value);
    Ok(())
}

/// Characters that are encoded: all but the unreserved ones of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Percent-encodes a part of a path or query.
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// Decodes percent-encoding. A `%` without two hexadecimal digits is an error.
pub fn decode(text: &str) -> Result<String, Fault> {
    let is_code =
        |rest: &str| matches!(rest.as_bytes(), [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit());
    let decoded = percent_decode_str(text).decode_utf8();
    match decoded {
        Ok(decoded) if text.split('%').skip(1).all(is_code) => Ok(decoded.into_owned()),
        _ => Err(Fault::new(ErrorCode::InvalidRequest, "the address is not valid percent-encoded UTF-8")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn query(text: &str) -> Result<Value, ErrorCode> {
        let literals =
            BTreeMap::from([("track".to_owned(), Literal::Integer), ("raw".to_owned(), Literal::Boolean)]);
        from_query(text, &literals).map(Value::Object).map_err(|fault| fault.code)
    }

    #[test]
    fn queries_are_decoded_and_numbers_read() {
        assert_eq!(
            query("venture=a%2Fb&track=3&x=c+d"),
            Ok(json!({"venture": "a/b", "track": 3, "x": "c d"}))
        );
        assert_eq!(query(""), Ok(json!({})));
        assert_eq!(query("a&b="), Ok(json!({"a": "", "b": ""})));
        assert_eq!(query("raw=true"), Ok(json!({"raw": true})));
        assert_eq!(query("raw"), Ok(json!({"raw": true})));
        assert_eq!(query("raw=0"), Ok(json!({"raw": false})));
        assert_eq!(query("track=0"), Ok(json!({"track": 0})));
        assert_eq!(query("track=3.0"), Ok(json!({"track": 3})));
        assert_eq!(query("track=1e2"), Ok(json!({"track": 100})));
    }

    #[test]
    fn values_of_another_type_stay_text() {
        for text in ["x", "", "1.5", "inf", "none"] {
            assert_eq!(query(&format!("track={text}")), Ok(json!({ "track": text })));
        }
        assert_eq!(query("raw=maybe"), Ok(json!({ "raw": "maybe" })));
    }

    #[test]
    fn encoded_text_is_decoded_to_itself() {
        let text = "a-b_c.d~ /&=+%é";
        assert_eq!(encode(text), "a-b_c.d~%20%2F%26%3D%2B%25%C3%A9");
        assert_eq!(decode(&encode(text)).unwrap(), text);
        assert_eq!(decode("%2fx").unwrap(), "/x");
    }

    #[test]
    fn every_repeated_query_parameter_is_reported() {
        let fault = from_query("a=1&a=2&b=1&b=2", &BTreeMap::new()).unwrap_err();
        let fields = fault.details.unwrap()["fields"].clone();
        assert_eq!([&fields[0]["field"], &fields[1]["field"]], ["a", "b"]);
    }

    #[test]
    fn invalid_queries_are_rejected() {
        for bad in ["a=%", "a=%zz", "a=%ff", "a=1&a=2"] {
            assert_eq!(query(bad), Err(ErrorCode::InvalidRequest), "{bad}");
        }
    }
}
