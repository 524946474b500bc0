//! Shortens values without changing their type: a text stays a text, an array an array, an object an object.
//!
//! A marker states what was omitted, at the place of the omission. Keys and numbers are never changed.

use std::borrow::Cow;

use baton_core::{JsonKind, JsonMember, JsonText, compare_keys, write_string};

use super::fair_cap::{SizeRange, fair_cap, take_room};
use crate::classify::{byte_size, is_chronological, list_size, member_size, text_size};

/// Object member that holds the number of omitted members.
const MARKER_KEY: &str = "…";
/// A value of at most this many bytes is not longer than any marker that could replace it.
const MIN_MARKER_BYTES: usize = 24;
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
    /// Chooses the emphasized end by the key and the value.
    pub(super) fn of(key: &str, value: JsonText<'_>) -> Self {
        if is_chronological(key, value) { Self::End } else { Self::Start }
    }

    /// Returns the part of the space that the other end gets.
    const fn other_end(self, room: usize) -> usize {
        match self {
            Self::Start => room / 3,
            Self::End => room / 6,
        }
    }
}

/// Returns the size of the shortest form of a value in bytes.
pub(super) fn min_size(value: JsonText<'_>) -> usize {
    if value.size() <= MIN_MARKER_BYTES {
        return value.size();
    }
    let shortest = match value.kind() {
        JsonKind::Null | JsonKind::Bool | JsonKind::Number => return value.size(),
        JsonKind::String => text_size(&bytes_marker(value.decode().len())),
        JsonKind::Array => {
            let count = value.items().count();
            list_size([text_size(&items_marker(count, count))].into_iter())
        }
        JsonKind::Object => list_size([marker_member_size(value.members().count())].into_iter()),
    };
    shortest.min(value.size())
}

/// Shortens a value to at most `target` bytes of JSON, or to its shortest form when even that is longer.
pub(super) fn condense<'t>(
    value: JsonText<'t>,
    target: usize,
    emphasis: impl FnOnce() -> Emphasis,
) -> Cow<'t, str> {
    if value.size() <= target {
        return value.as_str().into();
    }
    let target = target.max(min_size(value));
    if value.size() <= target {
        return value.as_str().into();
    }
    match value.kind() {
        JsonKind::Null | JsonKind::Bool | JsonKind::Number => value.as_str().into(),
        JsonKind::String => {
            let mut text = String::with_capacity(target);
            write_string(&mut text, &condense_text(&value.decode(), target, emphasis()));
            text.into()
        }
        JsonKind::Array => condense_items(value, target, emphasis()).into(),
        JsonKind::Object => condense_members(value, target).into(),
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

/// Characters that may end a sentence.
const SENTENCE_ENDS: [char; 7] = ['.', '!', '?', ';', '。', '！', '？'];

/// Returns the end of the sentence that `mark` at `index` ends. `None` if the mark is inside a word, as in `1.5`.
fn sentence_end(text: &str, index: usize, mark: &str) -> Option<usize> {
    let end = index + mark.len();
    (!mark.is_ascii() || text[end..].starts_with([' ', '\n'])).then_some(end)
}

/// Returns the positions of the last end of a line, of a sentence and of a word.
fn ends_of_pieces(text: &str) -> impl Iterator<Item = usize> {
    let line = text.rfind('\n');
    let sentence =
        text.rmatch_indices(SENTENCE_ENDS).find_map(|(index, mark)| sentence_end(text, index, mark));
    [line, sentence, text.rfind(' ')].into_iter().flatten()
}

/// Returns the positions of the first start of a line, of a sentence and of a word.
fn starts_of_pieces(text: &str) -> impl Iterator<Item = usize> {
    let line = text.find('\n').map(|index| index + 1);
    let sentence =
        text.match_indices(SENTENCE_ENDS).find_map(|(index, mark)| sentence_end(text, index, mark));
    [line, sentence, text.find(' ')].into_iter().flatten()
}

/// Keeps the first and the last items, with more of the emphasized end. An item that fits only in part is
/// shortened.
fn condense_items(array: JsonText<'_>, target: usize, emphasis: Emphasis) -> String {
    // Items are taken from the emphasized end first, then from the other end.
    let mut near_first: Vec<JsonText<'_>> = array.items().collect();
    let all = near_first.len();
    if emphasis == Emphasis::End {
        near_first.reverse();
    }
    let comma = ",".len();
    let marker_bytes = text_size(&items_marker(all, all));
    let mut room = target.saturating_sub("[]".len() + marker_bytes);
    let mut take = |items: &mut dyn Iterator<Item = &JsonText<'_>>, reserved: usize| {
        let fits = |item: &&JsonText<'_>| {
            let bytes = item.size() + comma;
            room >= bytes + reserved && take_room(&mut room, bytes)
        };
        (items.take_while(fits).count(), room)
    };
    let (near, _) = take(&mut near_first.iter(), emphasis.other_end(target));
    let (far, _) = take(&mut near_first[near..].iter().rev(), 0);
    let (more, left) = take(&mut near_first[near..all - far].iter(), 0);
    let near = near + more;

    let middle = &near_first[near..all - far];
    let cut = middle.first().filter(|item| left >= MIN_ITEM_BYTES && min_size(**item) + comma <= left);
    let left_out = middle.len() - usize::from(cut.is_some());
    let marker = (left_out > 0).then(|| {
        let mut text = String::new();
        write_string(&mut text, &items_marker(left_out, all));
        Cow::Owned(text)
    });
    let mut short: Vec<Cow<'_, str>> = near_first[..near].iter().map(|item| item.as_str().into()).collect();
    short.extend(cut.map(|item| condense(*item, left - comma, || emphasis)));
    short.extend(marker);
    short.extend(near_first[all - far..].iter().map(|item| Cow::Borrowed(item.as_str())));
    if emphasis == Emphasis::End {
        short.reverse();
    }
    format!("[{}]", short.join(","))
}

/// Keeps as many members as possible: short members first, long members shortened evenly.
fn condense_members(object: JsonText<'_>, target: usize) -> String {
    struct Candidate<'t> {
        member: JsonMember<'t>,
        range: SizeRange,
    }
    impl Candidate<'_> {
        /// Returns the size of the key with its colon and comma.
        const fn around(&self) -> usize {
            self.member.key.size() + ":,".len()
        }
    }
    let range = |value: JsonText<'_>| SizeRange { min: min_size(value), full: value.size() };
    let mut order: Vec<Candidate<'_>> =
        object.members().map(|member| Candidate { range: range(member.value), member }).collect();
    order.sort_by_key(|candidate| candidate.range.min + candidate.around());
    let all = order.len();
    let floors = order.iter().map(|candidate| candidate.range.min + candidate.around()).sum::<usize>();
    let mut room = target.saturating_sub("{".len());
    if floors > room {
        room = room.saturating_sub(marker_member_size(all) + ",".len());
        let mut left = room;
        let kept = order
            .iter()
            .take_while(|candidate| take_room(&mut left, candidate.range.min + candidate.around()));
        let kept = kept.count();
        order.truncate(kept);
    }
    let ranges: Vec<SizeRange> = order.iter().map(|candidate| candidate.range).collect();
    let names = order.iter().map(Candidate::around).sum::<usize>();
    let cap = fair_cap(&ranges, room.saturating_sub(names));
    order.sort_by_key(|candidate| candidate.member.start);
    let mut members: Vec<(Cow<'_, str>, Cow<'_, str>)> = order
        .iter()
        .map(|Candidate { member: JsonMember { key, value, .. }, range }| {
            let short = condense(*value, range.size_at(cap), || Emphasis::of(&key.decode(), *value));
            (key.as_str().into(), short)
        })
        .collect();
    if members.len() < all {
        add_marker(&mut members, all - order.len());
    }
    let members: Vec<String> = members.iter().map(|(key, value)| format!("{key}:{value}")).collect();
    format!("{{{}}}", members.join(","))
}

/// Adds the number of omitted members, in the order of the keys. If the object already has this key, its
/// value is kept.
fn add_marker(members: &mut Vec<(Cow<'_, str>, Cow<'_, str>)>, left_out: usize) {
    let place = members.binary_search_by(|(key, _)| compare_keys(&JsonText::new(key).decode(), MARKER_KEY));
    if let Err(place) = place {
        let (mut key, mut value) = (String::new(), String::new());
        write_string(&mut key, MARKER_KEY);
        write_string(&mut value, &keys_marker(left_out));
        members.insert(place, (key.into(), value.into()));
    }
}

#[cfg(test)]
#[path = "condense_tests.rs"]
mod tests;
