//! What is wrong with a task file whose fields do not have the form that they should, field by field and all at once.

use serde_json::{Map, Value};

use super::file::Priority;
use super::name::{Area, Role, TaskId};

/// Lists what is wrong, each with the field it is wrong with. Empty when every field has the form that it should.
pub fn shape_problems(file: &Value) -> Vec<(String, String)> {
    let Value::Object(fields) = file else {
        return vec![("the file".into(), "must hold fields like `title: TEXT`".into())];
    };
    let mut found = Problems::default();
    for name in ["title", "status", "description"] {
        found.require(fields, name, |value| as_text(value).map(|_| ()));
    }
    found.require(fields, "priority", |value| {
        let known = serde_json::from_value::<Priority>(value.clone()).is_ok();
        if known { Ok(()) } else { Err("must be P0, P1 or P2".into()) }
    });
    found.require(fields, "area", as_name::<Area>);
    found.allow(fields, "id", as_name::<TaskId>);
    for name in ["scope_in", "scope_out", "acceptance_criteria"] {
        found.list(name, fields.get(name), |item| as_text(item).map(|_| ()));
    }
    for (name, parts) in [("scope", ["in", "out"].as_slice()), ("qa", &["commands"])] {
        match fields.get(name) {
            None => {}
            Some(Value::Object(members)) => {
                for part in parts {
                    let item = |item: &Value| as_text(item).map(|_| ());
                    found.list(&format!("{name}.{part}"), members.get(*part), item);
                }
            }
            Some(_) => found.add(name, format!("must have {} below it", parts.join(" or "))),
        }
    }
    found.list("standards", fields.get("standards"), standard);
    if fields.get("pipeline").is_some_and(|pipeline| !pipeline.is_null()) {
        found.list("pipeline", fields.get("pipeline"), as_name::<Role>);
    }
    found.0
}

type Check = Result<(), String>;

#[derive(Default)]
struct Problems(Vec<(String, String)>);

impl Problems {
    fn add(&mut self, field: &str, problem: String) {
        self.0.push((field.to_owned(), problem));
    }

    fn require(&mut self, fields: &Map<String, Value>, name: &str, check: impl Fn(&Value) -> Check) {
        match fields.get(name) {
            None | Some(Value::Null) => self.add(name, "is missing".into()),
            Some(value) => self.check(name, value, check),
        }
    }

    fn allow(&mut self, fields: &Map<String, Value>, name: &str, check: impl Fn(&Value) -> Check) {
        if let Some(value) = fields.get(name).filter(|value| !value.is_null()) {
            self.check(name, value, check);
        }
    }

    fn check(&mut self, name: &str, value: &Value, check: impl Fn(&Value) -> Check) {
        if let Err(problem) = check(value) {
            self.add(name, problem);
        }
    }

    fn list(&mut self, name: &str, value: Option<&Value>, check: impl Fn(&Value) -> Check) {
        match value {
            None => {}
            Some(Value::Array(items)) => {
                for (at, item) in items.iter().enumerate() {
                    self.check(&format!("{name}[{at}]"), item, &check);
                }
            }
            Some(_) => self.add(name, "must be a list".into()),
        }
    }
}

/// Any plain value is text to YAML; a colon makes a mapping of what somebody meant as text.
fn as_text(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        Value::Object(_) => Err("must be text; put it in quotes, a colon makes a mapping of it".into()),
        Value::Array(_) | Value::Null => Err("must be text".into()),
    }
}

fn as_name<T: std::str::FromStr<Err: std::fmt::Display>>(value: &Value) -> Check {
    as_text(value)?.parse::<T>().map(|_| ()).map_err(|error| error.to_string())
}

fn standard(value: &Value) -> Check {
    let Value::Object(parts) = value else {
        return as_text(value)
            .map(|_| ())
            .map_err(|_| "must be `file#section`, or have file and section below it".into());
    };
    for name in ["file", "section"] {
        if !parts.get(name).is_some_and(Value::is_string) {
            return Err(format!("must have {name}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_field_that_is_wrong_is_named_at_once() {
        let file = json!({ "title": ["x"], "priority": "P9", "area": "../x", "id": "x", "scope": { "in": "src" }, "qa": [],
            "acceptance_criteria": [{ "p95": "below 20" }, "good"], "standards": [{ "file": "a" }, 3], "pipeline": ["A B"] });
        let problems = shape_problems(&file);
        let fields: Vec<&str> = problems.iter().map(|(field, _)| field.as_str()).collect();
        let expected = [
            "title",
            "status",
            "description",
            "priority",
            "area",
            "id",
            "acceptance_criteria[0]",
            "scope.in",
            "qa",
            "standards[0]",
            "pipeline[0]",
        ];
        assert_eq!(fields, expected, "{problems:?}");
        assert!(problems.iter().any(|(_, problem)| problem.contains("put it in quotes")), "{problems:?}");
        assert!(problems.contains(&("priority".into(), "must be P0, P1 or P2".into())));
    }

    #[test]
    fn what_has_the_right_form_has_no_problem() {
        let file = json!({ "title": 7, "status": "in_progress", "priority": "P1", "area": "backend", "description": "d",
            "owner": { "any": 1 }, "standards": ["a.md#b", { "file": "c.md", "section": "D" }] });
        assert_eq!(shape_problems(&file), []);
        assert_eq!(shape_problems(&json!(["x"])).len(), 1);
    }
}
