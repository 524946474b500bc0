//! *Activity*: a calendar of the last 53 weeks.

use std::collections::BTreeMap;

use baton_app::session::{ActiveDay, SessionActivity};
use baton_core::Timestamp;
use maud::{Markup, html};
use serde_json::json;

use super::PageContent;
use crate::visitor::{Problem, Query, Visitor};
use crate::widgets::{count, empty};

const DAY_MILLIS: i64 = 86_400_000;
const WEEKS: i64 = 53;

pub(super) async fn render(visitor: &Visitor, query: &Query) -> Result<PageContent, Problem> {
    let days = visitor.ask::<SessionActivity>(query.params(&["venture"], json!({}))).await?.days;
    let sessions: u64 = days.iter().map(|day| day.sessions).sum();
    let turns: u64 = days.iter().map(|day| day.turns).sum();
    let body = html! {
        h1 { "Activity" }
        p.lead { (count(turns as usize, "turn")) " in " (count(sessions as usize, "session")) " on " (count(days.len(), "day")) " of the last year." }
        @if days.is_empty() {
            (empty("No work yet", html! { p { "Days with work are coloured here. Import earlier chats with:" } pre { code { "baton import claude-code" } } }))
        } @else {
            (calendar(&days, visitor.now))
            (table(&days))
        }
    };
    Ok(PageContent::new("Activity", query.url("/api/activity", &["venture"]), body))
}

/// One column per week, from Monday to Sunday.
fn calendar(days: &[ActiveDay], now: Timestamp) -> Markup {
    let by_day: BTreeMap<&str, &ActiveDay> = days.iter().map(|day| (day.day.as_str(), day)).collect();
    let most = days.iter().map(|day| day.turns + day.sessions).max().unwrap_or(1).max(1);
    // 1970-01-01 was a Thursday.
    let today = now.as_millis() / DAY_MILLIS;
    let monday = today - (today + 3) % 7;
    let day_at = |week: i64, weekday: i64| monday - (WEEKS - 1 - week) * 7 + weekday;
    html! {
        div.scroll.newest-first tabindex="0" role="img" aria-label="Work per day; the table below has the numbers" {
            div.calendar {
                @for week in 0..WEEKS {
                    div.week {
                        @for weekday in 0..7 {
                            @let number = day_at(week, weekday);
                            @if number <= today {
                                @let name = Timestamp::from_millis(number * DAY_MILLIS).day();
                                @let level = by_day.get(name.as_str()).map_or(0, |day| level(day, most));
                                @let title = by_day.get(name.as_str()).map_or_else(|| format!("{name}: no work"), |day| describe(day));
                                span class=(format!("day level-{level}")) title=(title) {}
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the shade of a day, 1 to 4.
fn level(day: &ActiveDay, most: u64) -> u64 {
    ((day.turns + day.sessions) * 4).div_ceil(most).clamp(1, 4)
}

fn describe(day: &ActiveDay) -> String {
    format!("{}: {}, {}", day.day, count(day.turns as usize, "turn"), count(day.sessions as usize, "session"))
}

fn table(days: &[ActiveDay]) -> Markup {
    html! {
        details id="days" {
            summary { "All days" }
            div.scroll { table {
                thead { tr { th { "Day (UTC)" } th.number { "Sessions" } th.number { "Turns" } } }
                tbody { @for day in days.iter().rev() { tr { td { (day.day) } td.number { (day.sessions) } td.number { (day.turns) } } } }
            } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_column_contains_today_and_days_with_work_are_shaded() {
        let now = Timestamp::from_millis(1_700_000_000_000);
        let day = |day: Timestamp, turns| ActiveDay { day: day.day(), sessions: 1, turns };
        let shown =
            calendar(&[day(Timestamp::from_millis(now.as_millis() - DAY_MILLIS), 1), day(now, 40)], now)
                .into_string();
        let last = shown.rsplit("class=\"week\"").next().unwrap();
        assert!(last.contains("level-1\" title=\"2023-11-13: 1 turn, 1 session\""), "{last}");
        assert!(last.contains("level-4\" title=\"2023-11-14: 40 turns, 1 session\""), "{last}");
        assert_eq!(shown.matches("class=\"week\"").count(), WEEKS as usize);
        assert!(!last.contains("2023-11-15"), "the future is not shown: {last}");
    }
}
