//! Small parts of pages: times, links, labels, empty states, forms.

use baton_core::task::TaskRecord;
use baton_core::{Timestamp, counted, one_line, visible};
use maud::{Markup, html};

use crate::visitor::{Query, Visitor, encode, url};

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Shows how long ago something was, with the exact time as a tooltip.
pub(crate) fn time(at: Timestamp, now: Timestamp) -> Markup {
    let exact = at.to_string();
    html! { time datetime=(exact) title=(exact) { (ago(at, now)) } }
}

/// Describes a time relative to now.
fn ago(at: Timestamp, now: Timestamp) -> String {
    let millis = now.as_millis() - at.as_millis();
    match millis {
        ..-5_000 => "in the future".to_owned(),
        -5_000..10_000 => "just now".to_owned(),
        10_000..MINUTE => format!("{} s ago", millis / 1_000),
        MINUTE..HOUR => format!("{} min ago", millis / MINUTE),
        HOUR..DAY => format!("{} h ago", millis / HOUR),
        _ if millis < 14 * DAY => match millis / DAY {
            1 => "yesterday".to_owned(),
            days => format!("{days} days ago"),
        },
        _ => at.day(),
    }
}

/// Describes the time between two times.
pub(crate) fn duration(from: Timestamp, until: Timestamp) -> String {
    let millis = (until.as_millis() - from.as_millis()).max(0);
    match millis {
        ..MINUTE => format!("{} s", millis / 1_000),
        MINUTE..HOUR => format!("{} min", millis / MINUTE),
        HOUR..DAY => format!("{} h {} min", millis / HOUR, millis % HOUR / MINUTE),
        _ => format!("{} days", millis / DAY),
    }
}

/// Shows text written by an agent or user: lines are kept, nothing is markup. The frame of the page makes control
/// characters visible.
pub(crate) fn prose(text: &str) -> Markup {
    html! { div.prose { (text.trim()) } }
}

/// Shows text of an agent in one line.
pub(crate) fn line(text: &str, max_chars: usize) -> Markup {
    // Escaped first, because `one_line` would remove control characters.
    html! { (one_line(&visible(text), max_chars)) }
}

/// Shows an empty state with the next step.
pub(crate) fn empty(title: &str, next: Markup) -> Markup {
    html! { div.empty { p.empty-title { (title) } div { (next) } } }
}

/// Links to the page of a record by its id, or shows the id if there is no page for it.
pub(crate) fn id_link(id: &str) -> Markup {
    match page_of(id) {
        Some(url) => html! { a.id href=(url) { (id) } },
        None => html! { span.id { (id) } },
    }
}

/// Returns the page of a record.
pub(crate) fn page_of(id: &str) -> Option<String> {
    if TaskRecord::parse_item_id(id).is_some() {
        return Some(url("/ui/tasks/show", [("id", id)]));
    }
    let (kind, _) = id.split_once('_').unwrap_or(("", ""));
    let folder = match kind {
        "sess" => "sessions",
        "ho" => "handoffs",
        "obs" | "turn" | "note" | "ckpt" => "items",
        _ => return None,
    };
    Some(format!("/ui/{folder}/{}", encode(id)))
}

/// Shows a repository name with its owner less prominent.
pub(crate) fn repo_name(repo: &str) -> Markup {
    match repo.split_once('/') {
        Some((owner, name)) => html! { span.owner { (owner) "/" } (name) },
        None => html! { (repo) },
    }
}

/// Shows a list under a small heading, unless it is empty.
pub(crate) fn list(heading: &str, texts: &[String]) -> Markup {
    html! {
        @if !texts.is_empty() {
            section.field {
                h3 { (heading) }
                ul { @for text in texts { li { (text) } } }
            }
        }
    }
}

/// Number of entries on a page of a list without a cursor. One more is read, to see whether there is a next page.
pub(crate) const PAGE_SIZE: usize = 50;

/// Shows the link to the next page of a list without a cursor. `link` is the URL of the list with its filters.
pub(crate) fn next_page(link: &str, query: &Query, found: usize) -> Markup {
    let separator = if link.contains('?') { '&' } else { '?' };
    let offset = query.offset() + PAGE_SIZE;
    html! {
        @if found > PAGE_SIZE {
            p.pager { a.button rel="next" href=(format!("{link}{separator}offset={offset}")) { "Next page" } }
        }
    }
}

/// Hidden fields that every form that writes needs.
pub(crate) fn form_fields(visitor: &Visitor, back: &str) -> Markup {
    html! {
        input type="hidden" name="csrf" value=(visitor.csrf);
        input type="hidden" name="back" value=(back);
        // Sending the form twice has the effect of sending it once.
        input type="hidden" name="idempotency_key" value=(visitor.correlation_id.as_str());
    }
}

/// Describes a size.
pub(crate) fn bytes(size: u64) -> String {
    match size {
        ..1_024 => format!("{size} B"),
        1_024..1_048_576 => format!("{:.1} KiB", size as f64 / 1_024.0),
        _ => format!("{:.1} MiB", size as f64 / 1_048_576.0),
    }
}

/// Returns the venture of a page that shows one: the requested one, the only one of a token, or the configured one.
pub(crate) fn default_venture(visitor: &Visitor, query: &Query) -> String {
    let own = visitor.actor.only_venture().unwrap_or(&visitor.app.settings().default_venture);
    query.get("venture").unwrap_or(own.as_str()).to_owned()
}

/// Returns `1 session`, `2 sessions`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    counted(number as u64, noun)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_relative_and_exact() {
        let now = Timestamp::from_millis(1_700_000_000_000);
        let before = |millis: i64| Timestamp::from_millis(now.as_millis() - millis);
        let expected = [
            (0, "just now"),
            (59_000, "59 s ago"),
            (90_000, "1 min ago"),
            (3 * HOUR + 5, "3 h ago"),
            (DAY, "yesterday"),
            (3 * DAY, "3 days ago"),
            (30 * DAY, "2023-10-15"),
            (-60_000, "in the future"),
        ];
        for (millis, text) in expected {
            assert_eq!(ago(before(millis), now), text, "{millis}");
        }
        let shown = time(before(90_000), now).into_string();
        assert!(
            shown.contains("datetime=\"2023-11-14T22:11:50.000Z\" title=\"2023-11-14T22:11:50.000Z\""),
            "{shown}"
        );
    }

    #[test]
    fn one_line_of_text_has_an_ellipsis_only_if_it_was_cut() {
        let shown = |text: &str| line(text, 5).into_string();
        assert_eq!(shown("five5"), "five5");
        assert_eq!(shown("a  b\nc"), "a b c");
        assert_eq!(shown("longer"), "long…");
        assert!(shown("four more").ends_with('…'));
    }

    #[test]
    fn text_of_agents_is_never_markup() {
        let hostile = "<script>alert(1)</script>\u{202e}\u{1b}[31m";
        assert_eq!(
            line(hostile, 100).into_string(),
            "&lt;script&gt;alert(1)&lt;/script&gt;\\u{202e}\\u{1b}[31m"
        );
        assert_eq!(
            prose(hostile).into_string(),
            "<div class=\"prose\">&lt;script&gt;alert(1)&lt;/script&gt;\u{202e}\u{1b}[31m</div>"
        );
    }
}
