//! Making a value shorter without changing what it is: a text stays a text, an array an array, an object an object.
//!
//! What was left out is said where it is missing. Keys keep their names and numbers their digits.

use serde_json::{Map, Value};

use super::allot::{Want, fair_cap};
use crate::classify::{byte_size, is_chronological, json_size, list_size, member_size, text_size};

/// Object member that holds the number of omitted members.
const MARKER_KEY: &str = "…";
/// Minimum length of text before or after a marker.
const MIN_PIECE_BYTES: usize = 12;
/// Minimum space for shortening another item.
const MIN_ITEM_BYTES: usize = 48;

/// End of a long text or array that gets more space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Emphasis {
    /// The beginning gets two thirds of the space.
    Start,
    /// The end gets five sixths of the space, because the latest entries of a log or conversation matter most.
    End,
}

impl Emphasis {
    /// Chooses the end from the key and the value.
    pub(super) fn of(key: &str, value: &Value) -> Self {
        if is_chronological(key, value) { Self::End } else { Self::Start }
    }

    /// Fraction of the space for the other end.
    const fn other_end(self, room: usize) -> usize {
        match self {
            Self::Start => room / 3,
            Self::End => room / 6,
        }
    }
}

/// Returns the size of the shortest form of a value in bytes.
pub(super) fn min_size(value: &Value) -> usize {
    let shortest = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => return json_size(value),
        Value::String(text) => text_size(&bytes_marker(text.len())),
        Value::Array(items) => list_size([text_size(&items_marker(items.len(), items.len()))].into_iter()),
        Value::Object(members) => list_size([marker_member_size(members.len())].into_iter()),
    };
    shortest.min(json_size(value))
}

/// Shortens a value to at most `target` bytes of JSON, or to its shortest form when even that is longer.
pub(super) fn condense(value: &Value, target: usize, emphasis: Emphasis) -> Value {
    let target = target.max(min_size(value));
    if json_size(value) <= target {
        return value.clone();
    }
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        Value::String(text) => Value::String(condense_text(text, target, emphasis)),
        Value::Array(items) => Value::Array(condense_items(items, target, emphasis)),
        Value::Object(members) => Value::Object(condense_members(members, target)),
    }
}

fn bytes_marker(count: usize) -> String {
    format!("[… {count} bytes left out …]")
}

fn items_marker(count: usize, all: usize) -> String {
    format!("[… {count} of {all} items left out …]")
}

fn keys_marker(count: usize) -> String {
    format!("{count} more left out")
}

fn marker_member_size(count: usize) -> usize {
    member_size(MARKER_KEY, text_size(&keys_marker(count)))
}

/// Keeps both ends of a text, with more of the emphasized end.
fn condense_text(text: &str, target: usize, emphasis: Emphasis) -> String {
    let separator = if text.contains('\n') { "\n" } else { " " };
    let around = text_size(&bytes_marker(text.len())) + 2 * text_size(separator) - 2 * text_size("");
    let room = target.saturating_sub(around);
    let other = emphasis.other_end(room);
    let (head_room, tail_room) = match emphasis {
        Emphasis::Start => (room - other, other),
        Emphasis::End => (other, room - other),
    };
    let (head, tail) = (head_of(text, head_room), tail_of(text, tail_room));
    let left_out = text.len() - head.len() - tail.len();
    let mut short = String::with_capacity(target);
    for piece in [head, bytes_marker(left_out).as_str(), tail] {
        if !short.is_empty() && !piece.is_empty() {
            short.push_str(separator);
        }
        short.push_str(piece);
    }
    short
}

/// Returns the longest prefix that fits and ends at a line, sentence or word boundary.
fn head_of(text: &str, room: usize) -> &str {
    let mut bytes = 0;
    let end = text.char_indices().find_map(|(index, c)| {
        bytes += text[index..index + c.len_utf8()].bytes().map(byte_size).sum::<usize>();
        (bytes > room).then_some(index)
    });
    let head = &text[..end.unwrap_or(text.len())];
    let at_least = head.len() * 6 / 10;
    let end = ends_of_pieces(head).find(|end| *end >= at_least).unwrap_or(head.len());
    long_enough(head[..end].trim_end())
}

/// Returns the longest suffix that fits and starts at a line, sentence or word boundary.
fn tail_of(text: &str, room: usize) -> &str {
    let mut bytes = 0;
    let start = text.char_indices().rev().find_map(|(index, c)| {
        bytes += text[index..index + c.len_utf8()].bytes().map(byte_size).sum::<usize>();
        (bytes > room).then_some(index + c.len_utf8())
    });
    let tail = &text[start.unwrap_or(0)..];
    let at_most = tail.len() * 4 / 10;
    let start = starts_of_pieces(tail).find(|start| *start <= at_most).unwrap_or(0);
    long_enough(tail[start..].trim_start())
}

fn long_enough(piece: &str) -> &str {
    if piece.len() < MIN_PIECE_BYTES { "" } else { piece }
}

/// Returns the last end of a line, of a sentence and of a word.
fn ends_of_pieces(text: &str) -> impl Iterator<Item = usize> {
    let line = text.rfind('\n');
    let sentence = text.rmatch_indices(['.', '!', '?', ';', '。', '！', '？']).find_map(|(index, mark)| {
        let end = index + mark.len();
        (!mark.is_ascii() || text[end..].starts_with([' ', '\n'])).then_some(end)
    });
    [line, sentence, text.rfind(' ')].into_iter().flatten()
}

/// Returns the first start of a line, of a sentence and of a word.
fn starts_of_pieces(text: &str) -> impl Iterator<Item = usize> {
    let line = text.find('\n').map(|index| index + 1);
    let sentence = text.match_indices(['.', '!', '?', ';', '。', '！', '？']).find_map(|(index, mark)| {
        let end = index + mark.len();
        (!mark.is_ascii() || text[end..].starts_with([' ', '\n'])).then_some(end)
    });
    [line, sentence, text.find(' ')].into_iter().flatten()
}

/// Keeps the first and the last items, with more of the emphasized end. The last item that fits only in part is
/// shortened.
fn condense_items(items: &[Value], target: usize, emphasis: Emphasis) -> Vec<Value> {
    // Items are taken from the near end, the one that matters more, then from the far end.
    let near_first: Vec<&Value> = match emphasis {
        Emphasis::Start => items.iter().collect(),
        Emphasis::End => items.iter().rev().collect(),
    };
    let comma = ",".len();
    let marker_bytes = text_size(&items_marker(items.len(), items.len()));
    let costs: Vec<usize> = near_first.iter().map(|item| json_size(item) + comma).collect();
    let mut room = target.saturating_sub("[]".len() + marker_bytes);
    let mut take = |costs: &mut dyn Iterator<Item = &usize>, reserved: usize| {
        let fits = |cost: &&usize| {
            let rest = room.checked_sub(**cost).filter(|rest| *rest >= reserved);
            rest.map(|rest| room = rest).is_some()
        };
        (costs.take_while(fits).count(), room)
    };
    let (near, _) = take(&mut costs.iter(), emphasis.other_end(target));
    let (far, _) = take(&mut costs[near..].iter().rev(), 0);
    let (more, left) = take(&mut costs[near..costs.len() - far].iter(), 0);
    let near = near + more;

    let mut short: Vec<Value> = near_first[..near].iter().map(|item| (*item).clone()).collect();
    let middle = &near_first[near..near_first.len() - far];
    let cut = middle.first().filter(|item| left >= MIN_ITEM_BYTES && min_size(item) + comma <= left);
    short.extend(cut.map(|item| condense(item, left - comma, emphasis)));
    let left_out = middle.len() - usize::from(cut.is_some());
    if left_out > 0 {
        short.push(Value::String(items_marker(left_out, items.len())));
    }
    short.extend(near_first[near_first.len() - far..].iter().map(|item| (*item).clone()));
    if emphasis == Emphasis::End {
        short.reverse();
    }
    short
}

/// Keeps as many members as possible: short members first, long members shortened evenly.
fn condense_members(members: &Map<String, Value>, target: usize) -> Map<String, Value> {
    let around = |key: &str| member_size(key, 0) + ",".len();
    let mut order: Vec<(&String, &Value, Want)> = members
        .iter()
        .map(|(key, value)| (key, value, Want { floor: min_size(value), full: json_size(value) }))
        .collect();
    order.sort_by_key(|(key, _, want)| want.floor + around(key));
    let floors = order.iter().map(|(key, _, want)| want.floor + around(key)).sum::<usize>();
    let mut room = target.saturating_sub("{".len());
    let mut kept = order.len();
    if floors > room {
        room = room.saturating_sub(marker_member_size(members.len()) + ",".len());
        let mut left = room;
        kept = order
            .iter()
            .take_while(|(key, _, want)| {
                left.checked_sub(want.floor + around(key)).map(|rest| left = rest).is_some()
            })
            .count();
    }
    let wants: Vec<Want> = order[..kept].iter().map(|(_, _, want)| *want).collect();
    let names = order[..kept].iter().map(|(key, _, _)| around(key)).sum::<usize>();
    let cap = fair_cap(&wants, room.saturating_sub(names));
    let mut short: Map<String, Value> = order[..kept]
        .iter()
        .map(|(key, value, want)| ((*key).clone(), condense(value, want.at(cap), Emphasis::of(key, value))))
        .collect();
    if kept < order.len() {
        // A context that has this very key keeps its own value.
        short.entry(MARKER_KEY).or_insert_with(|| Value::String(keys_marker(members.len() - kept)));
    }
    short
}

#[cfg(test)]
#[path = "condense_tests.rs"]
mod tests;
