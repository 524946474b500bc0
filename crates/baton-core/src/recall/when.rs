//! Dates and relative times in a query. The current time is an argument; days are days in UTC.

use std::sync::LazyLock;

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, ToSpan};
use regex::{Captures, Regex};

use crate::time::Timestamp;

/// A period that a query mentions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Period {
    /// Start, inclusive.
    pub from: Timestamp,
    /// End, exclusive.
    pub until: Timestamp,
    /// The words of the query.
    pub words: String,
}

impl Period {
    /// Returns true if a time is in the period.
    pub fn contains(&self, time: Timestamp) -> bool {
        self.from <= time && time < self.until
    }
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [(&str, Weekday); 7] = [
    ("monday", Weekday::Monday),
    ("tuesday", Weekday::Tuesday),
    ("wednesday", Weekday::Wednesday),
    ("thursday", Weekday::Thursday),
    ("friday", Weekday::Friday),
    ("saturday", Weekday::Saturday),
    ("sunday", Weekday::Sunday),
];
const NUMBERS: [&str; 13] = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
];

const MONTH: &str = r"(?<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?";

/// Computes the first day of a period and the day after its last one from a match and the current day.
type Days = fn(&Captures<'_>, Date) -> Option<(Date, Date)>;

/// A form of dates or times.
struct Form {
    pattern: Regex,
    period: Days,
}

static FORMS: LazyLock<Vec<Form>> = LazyLock::new(|| {
    let forms: [(String, Days); 9] = [
        (r"\b(?<year>\d{4})-(?<number>\d{2})-(?<day>\d{2})\b".into(), iso_day),
        (format!(r"\b(?<day>\d{{1,2}})(?:st|nd|rd|th)?(?:\s+of)?\s+{MONTH}(?:,?\s+(?<year>\d{{4}}))?\b"), named_day),
        (format!(r"\b{MONTH}\s+(?<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(?<year>\d{{4}}))?\b"), named_day),
        (format!(r"\b{MONTH},?\s+(?:of\s+)?(?<year>\d{{4}})\b"), named_month),
        (format!(r"\b(?:in|last|since|during|of)\s+{MONTH}\b"), named_month),
        (r"\b(?<word>today|yesterday)\b".into(), near_day),
        (r"\b(?<which>this|last)\s+(?<unit>week|month|year)\b".into(), calendar_unit),
        (r"\blast\s+(?<weekday>monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b".into(), weekday),
        (r"\b(?<count>\d{1,3}|a|an|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\s+(?<unit>day|week|month|year)s?\s+ago\b".into(), ago),
    ];
    let compiled = forms.into_iter().filter_map(|(pattern, period)| {
        Some(Form { pattern: Regex::new(&format!("(?i){pattern}")).ok()?, period })
    });
    compiled.collect()
});

/// Finds the periods that a text mentions, and the text without them.
pub fn find_periods(text: &str, now: Timestamp) -> (Vec<Period>, String) {
    let Some(today) = day_of(now) else { return (Vec::new(), text.to_owned()) };
    let mut rest = text.to_owned();
    let mut found = Vec::new();
    for form in FORMS.iter() {
        let mut spans = Vec::new();
        for captures in form.pattern.captures_iter(&rest) {
            let Some(whole) = captures.get(0) else { continue };
            if let Some(period) = (form.period)(&captures, today).and_then(|(from, until)| {
                Some(Period {
                    from: start_of(from)?,
                    until: start_of(until)?,
                    words: whole.as_str().to_owned(),
                })
            }) {
                found.push(period);
                spans.push(whole.range());
            }
        }
        for span in spans.into_iter().rev() {
            rest.replace_range(span, " ");
        }
    }
    (found, rest)
}

fn day_of(time: Timestamp) -> Option<Date> {
    let instant = jiff::Timestamp::from_millisecond(time.as_millis()).ok()?;
    Some(instant.to_zoned(TimeZone::UTC).date())
}

fn start_of(day: Date) -> Option<Timestamp> {
    let instant = day.to_zoned(TimeZone::UTC).ok()?.timestamp();
    Some(Timestamp::from_millis(instant.as_millisecond()))
}

fn one_day(day: Date) -> Option<(Date, Date)> {
    Some((day, day.tomorrow().ok()?))
}

fn number<T: std::str::FromStr>(captures: &Captures<'_>, name: &str) -> Option<T> {
    captures.name(name)?.as_str().parse().ok()
}

fn month_of(captures: &Captures<'_>) -> Option<i8> {
    let name = captures.name("month")?.as_str().to_lowercase();
    let index = MONTHS.iter().position(|month| name.starts_with(month))?;
    i8::try_from(index + 1).ok()
}

fn iso_day(captures: &Captures<'_>, _: Date) -> Option<(Date, Date)> {
    one_day(Date::new(number(captures, "year")?, number(captures, "number")?, number(captures, "day")?).ok()?)
}

/// A day with or without a year; without a year it is the latest such day that is not in the future.
fn named_day(captures: &Captures<'_>, today: Date) -> Option<(Date, Date)> {
    let (month, day) = (month_of(captures)?, number(captures, "day")?);
    if let Some(year) = number(captures, "year") {
        return one_day(Date::new(year, month, day).ok()?);
    }
    // Two leap years are at most eight years apart.
    let mut days =
        (today.year() - 8..=today.year()).rev().filter_map(|year| Date::new(year, month, day).ok());
    one_day(days.find(|date| *date <= today)?)
}

fn named_month(captures: &Captures<'_>, today: Date) -> Option<(Date, Date)> {
    let month = month_of(captures)?;
    let year = number(captures, "year").unwrap_or(if month > today.month() {
        today.year() - 1
    } else {
        today.year()
    });
    let first = Date::new(year, month, 1).ok()?;
    Some((first, first.checked_add(1.month()).ok()?))
}

fn near_day(captures: &Captures<'_>, today: Date) -> Option<(Date, Date)> {
    let is_today = captures.name("word")?.as_str().eq_ignore_ascii_case("today");
    one_day(if is_today { today } else { today.yesterday().ok()? })
}

fn calendar_unit(captures: &Captures<'_>, today: Date) -> Option<(Date, Date)> {
    let is_last = captures.name("which")?.as_str().eq_ignore_ascii_case("last");
    let (first, length): (Date, Span) = match captures.name("unit")?.as_str().to_lowercase().as_str() {
        "week" => {
            let since_monday = i64::from(today.weekday().to_monday_zero_offset());
            (today.checked_sub(since_monday.days()).ok()?, 1.week())
        }
        "month" => (today.first_of_month(), 1.month()),
        _ => (today.first_of_year(), 1.year()),
    };
    let first = if is_last { first.checked_sub(length).ok()? } else { first };
    Some((first, first.checked_add(length).ok()?))
}

fn weekday(captures: &Captures<'_>, today: Date) -> Option<(Date, Date)> {
    let name = captures.name("weekday")?.as_str().to_lowercase();
    let (_, day) = WEEKDAYS.iter().find(|(weekday, _)| *weekday == name)?;
    one_day(today.nth_weekday(-1, *day).ok()?)
}

/// `3 days ago` is that day; `2 weeks ago` and longer are the period of that length around the day.
fn ago(captures: &Captures<'_>, today: Date) -> Option<(Date, Date)> {
    let count = captures.name("count")?.as_str().to_lowercase();
    let count: i64 = match count.as_str() {
        "a" | "an" => 1,
        word => match NUMBERS.iter().position(|number| *number == word) {
            Some(number) => i64::try_from(number).ok()?,
            None => word.parse().ok()?,
        },
    };
    let (back, margin) = match captures.name("unit")?.as_str().to_lowercase().as_str() {
        "day" => (count.days(), 0.days()),
        "week" => (count.weeks(), 3.days()),
        "month" => (count.months(), 15.days()),
        _ => (count.years(), 182.days()),
    };
    let day = today.checked_sub(back).ok()?;
    Some((day.checked_sub(margin).ok()?, day.checked_add(margin).ok()?.tomorrow().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A Monday.
    const NOW: &str = "2026-11-16T09:00:00.000Z";

    fn period(text: &str) -> Option<(String, String)> {
        let (found, _) = find_periods(text, NOW.parse().unwrap());
        assert!(found.len() < 2, "{found:?}");
        found.first().map(|period| (period.from.day(), period.until.day()))
    }

    #[test]
    fn dates_and_relative_times_become_periods() {
        for (text, from, until) in [
            ("what happened on 2026-03-05?", "2026-03-05", "2026-03-06"),
            ("on 8 May, 2023", "2023-05-08", "2023-05-09"),
            ("on the 3rd of June 2024", "2024-06-03", "2024-06-04"),
            ("May 7th 2023", "2023-05-07", "2023-05-08"),
            ("on December 24", "2025-12-24", "2025-12-25"),
            ("in May 2023", "2023-05-01", "2023-06-01"),
            ("in march", "2026-03-01", "2026-04-01"),
            ("what broke yesterday", "2026-11-15", "2026-11-16"),
            ("today", "2026-11-16", "2026-11-17"),
            ("last week", "2026-11-09", "2026-11-16"),
            ("this month", "2026-11-01", "2026-12-01"),
            ("last Tuesday", "2026-11-10", "2026-11-11"),
            ("3 days ago", "2026-11-13", "2026-11-14"),
            ("two weeks ago", "2026-10-30", "2026-11-06"),
        ] {
            assert_eq!(period(text), Some((from.to_owned(), until.to_owned())), "{text}");
        }
    }

    #[test]
    fn a_leap_day_without_a_year_is_the_latest_one() {
        for (now, leap_day) in [
            ("2026-11-16", "2024-02-29"),
            ("2024-02-28", "2020-02-29"),
            ("2024-02-29", "2024-02-29"),
            ("2100-03-01", "2096-02-29"),
            ("2104-01-01", "2096-02-29"),
        ] {
            let (found, _) = find_periods("on 29 February", format!("{now}T09:00:00.000Z").parse().unwrap());
            assert!(found.iter().map(|period| period.from.day()).eq([leap_day]), "{now}: {found:?}");
        }
    }

    #[test]
    fn words_that_are_not_dates_are_kept() {
        for text in ["it may work", "march on", "2026-13-45", "31 feb", "version 3", "second week"] {
            let (found, rest) = find_periods(text, NOW.parse().unwrap());
            assert!(found.is_empty(), "{text}: {found:?}");
            assert_eq!(rest, text);
        }
    }

    #[test]
    fn dates_are_removed_from_the_text() {
        let (_, rest) = find_periods("tests since last week in store.rs", NOW.parse().unwrap());
        assert_eq!(rest, "tests since   in store.rs");
    }

    proptest! {
        #[test]
        fn every_text_and_time_is_accepted(text in any::<String>(), now in 0..=253_402_207_200_000_i64) {
            find_periods(&text, Timestamp::from_millis(now));
        }
    }
}
