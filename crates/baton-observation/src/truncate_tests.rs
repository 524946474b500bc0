use proptest::prelude::*;

use super::*;

fn characters(text: &str) -> usize {
    text.chars().count()
}

/// Returns the numbers of missing characters in the markers of a text.
fn missing(shown: &str) -> Vec<usize> {
    shown
        .lines()
        .filter_map(|line| line.strip_prefix("[... truncated ")?.strip_suffix(" chars ...]")?.parse().ok())
        .collect()
}

fn log(lines: usize) -> String {
    (0..lines).map(|line| format!("line {line} of an uneventful build\n")).collect()
}

#[test]
fn the_patterns_are_valid() {
    assert!(SUMMARY.is_some() && ERROR.is_some());
}

#[test]
fn short_output_is_unchanged() {
    for text in ["", "short", &"x".repeat(MAX_RAW_CHARS), &"ä".repeat(MAX_RAW_CHARS)] {
        assert!(matches!(truncate_output(text), Cow::Borrowed(same) if same == text));
    }
}

#[test]
fn keeps_whole_lines_of_head_and_tail_around_one_marker() {
    let text = log(5_000);
    let shown = truncate_output(&text);
    let [gone] = missing(&shown)[..] else { panic!("{:?}", missing(&shown)) };
    let marker = format!("[... truncated {gone} chars ...]\n");
    let (head, tail) = shown.split_once(&marker).unwrap();
    assert!(text.starts_with(head) && text.ends_with(tail));
    assert!(head.ends_with('\n') && tail.starts_with("line "));
    assert_eq!(characters(head) + gone + characters(tail), characters(&text));
    assert!(characters(head) + characters(tail) > MAX_RAW_CHARS - 100);
}

#[test]
fn keeps_errors_and_test_summaries_from_the_middle() {
    let noise = log(2_000);
    let kept = "error[E0308]: mismatched types\ntest result: FAILED. 3 passed; 1 failed; 0 ignored\n";
    let text = format!("{noise}{kept}{noise}thread 'a' panicked at src/lib.rs:4:5:\n{noise}");
    let shown = truncate_output(&text);
    assert!(shown.contains(kept), "{shown}");
    assert!(shown.contains("\nthread 'a' panicked at src/lib.rs:4:5:\n["));
    assert_eq!(missing(&shown).len(), 3);
    assert!(characters(&shown) <= MAX_RAW_CHARS + MARKER_CHARS);
}

#[test]
fn many_errors_do_not_displace_the_summary_or_exceed_the_limit() {
    let errors: String = (0..20_000).map(|line| format!("error: {line}\n")).collect();
    let text = format!("{errors}test result: FAILED. 3 passed; 9 failed\n{errors}");
    let shown = truncate_output(&text);
    assert!(shown.contains("test result: FAILED. 3 passed; 9 failed"));
    assert!(characters(&shown) <= MAX_RAW_CHARS + MARKER_CHARS, "{}", characters(&shown));
}

#[test]
fn truncates_within_an_overlong_line() {
    let text = format!("{}error{}", "é".repeat(40_000), "x".repeat(40_000));
    let shown = truncate_output(&text);
    assert_eq!(missing(&shown).iter().sum::<usize>() + MAX_RAW_CHARS, characters(&text) + extra(&shown));
    assert!(shown.starts_with('é') && shown.ends_with('x'));
    assert!(characters(&shown) <= MAX_RAW_CHARS + MARKER_CHARS);
}

/// Returns the number of characters that remain below the limit.
fn extra(shown: &str) -> usize {
    let markers: usize = shown.lines().filter(|line| line.starts_with("[... ")).map(|line| line.len()).sum();
    let line_ends = shown.matches('\n').count();
    MAX_RAW_CHARS - (characters(shown) - markers - line_ends)
}

#[test]
fn list_is_truncated_in_the_middle_only() {
    let text: String = (0..4_000).map(|line| format!("- [Bash] error {line}\n")).collect();
    let shown = truncate_list(&text);
    assert_eq!(missing(&shown).len(), 1);
    assert!(shown.starts_with("- [Bash] error 0\n") && shown.ends_with("- [Bash] error 3999\n"));
}

proptest! {
    #[test]
    fn kept_parts_are_ordered_and_markers_count_the_rest(
        lines in proptest::collection::vec("(error: |test result: |1 failed |)[a-zé👩 ]{0,60}\r?\n?", 0..80),
        total in 100_usize..600,
        middle in 0_usize..100,
    ) {
        let text = lines.concat();
        let budget = Budget { total, middle, counts_lines: false };
        let parts = kept(&text, budget);
        let mut position = 0;
        let mut count = 0;
        for (index, part) in parts.iter().enumerate() {
            prop_assert!(part.start <= part.end && (index == 0 || part.start > position));
            count += characters(&text[part.clone()]);
            position = part.end;
        }
        prop_assert!(count <= total);
        prop_assert_eq!(parts.first().map(|part| part.start), Some(0));
        prop_assert_eq!(position, text.len());

        let shown = truncate(&text, budget);
        prop_assert_eq!(count + missing(&shown).iter().sum::<usize>(), characters(&text));
        prop_assert!(characters(&shown) <= total + MARKER_CHARS);
        if characters(&text) <= total {
            prop_assert_eq!(shown.as_ref(), text.as_str());
        } else {
            prop_assert!(count + total / 2 + middle + 2 >= total, "{} of {}", count, total);
        }
    }
}
