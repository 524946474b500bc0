//! Plain text: removes or replaces escape sequences, control characters and invisible characters.
//!
//! Tool output contains colours, progress bars and arbitrary file content, which cost model tokens and would be
//! interpreted by a terminal.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Chars;

const ESCAPE: char = '\u{1b}';

/// Removes escape sequences and all control characters except newlines and tabs. A carriage return that is not part of
/// a line end becomes a newline, so that the steps of a progress bar are separate lines.
pub fn strip_control(text: &str) -> String {
    strip(text, |kept, _| kept.push('\n'))
}

/// Removes the same as [`strip_control`]. Of a line that was overwritten with carriage returns, the last version is
/// kept.
pub fn strip_overwritten(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| byte < 0x20 && byte != b'\n' && byte != b'\t' || byte == 0x7f) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(strip(text, |kept, next| {
        // A carriage return at the end of a line overwrites nothing.
        if !matches!(next, Some('\r') | None) {
            kept.truncate(kept.rfind('\n').map_or(0, |end| end + 1));
        }
    }))
}

/// `on_return` handles a carriage return that is not part of a line end; it gets the next character.
fn strip(text: &str, mut on_return: impl FnMut(&mut String, Option<char>)) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\n' | '\t' => kept.push(character),
            '\r' => match characters.peek() {
                Some('\n') => {}
                next => on_return(&mut kept, next.copied()),
            },
            ESCAPE => skip_escape(&mut characters),
            '\u{9b}' => skip_control_sequence(&mut characters),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_control_string(&mut characters),
            _ if character.is_control() || is_invisible(character) => {}
            _ => kept.push(character),
        }
    }
    kept
}

/// Removes control characters other than newlines and tabs.
pub fn without_control_characters(text: &str) -> String {
    text.chars().filter(|character| !character.is_control() || matches!(character, '\n' | '\t')).collect()
}

/// Escapes control characters and invisible characters, so that a terminal does not interpret them. Newlines and tabs
/// are unchanged.
pub fn visible(text: &str) -> Cow<'_, str> {
    let needs_escape = |character: char| {
        is_invisible(character) || character.is_control() && !matches!(character, '\n' | '\t')
    };
    if !text.contains(needs_escape) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if needs_escape(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// Returns true for characters that change the text direction, and for tag characters, which are invisible to people
/// but not to a model.
const fn is_invisible(character: char) -> bool {
    matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}')
}

/// Skips an escape sequence after its escape character.
fn skip_escape(characters: &mut Peekable<Chars<'_>>) {
    match characters.peek() {
        Some('[') => {
            characters.next();
            skip_control_sequence(characters);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            characters.next();
            skip_control_string(characters);
        }
        _ => {
            while characters.next_if(|&next| matches!(next, ' '..='/')).is_some() {}
            characters.next_if(|&next| matches!(next, '0'..='~'));
        }
    }
}

/// Skips the parameters and the final character of a control sequence, for example a colour.
fn skip_control_sequence(characters: &mut Peekable<Chars<'_>>) {
    while characters.next_if(|&next| matches!(next, ' '..='?')).is_some() {}
    characters.next_if(|&next| matches!(next, '@'..='~'));
}

/// Skips a control string, for example a window title, up to its terminator or the end of the line.
fn skip_control_string(characters: &mut Peekable<Chars<'_>>) {
    while let Some(next) = characters.next_if(|&next| next != '\n') {
        match next {
            '\u{7}' | '\u{9c}' => return,
            ESCAPE if characters.next_if(|&next| next == '\\').is_some() => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn removes_escape_sequences_and_keeps_the_text() {
        for (text, expected) in [
            ("\u{1b}[1;31merror\u{1b}[0m: no", "error: no"),
            ("\u{1b}]0;title\u{7}text", "text"),
            ("\u{1b}]8;;https://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}Pq#0\u{1b}\\after", "after"),
            ("\u{1b}[31mFAILED\u{1b}(B\u{1b}[m\u{1b}]8;;u\u{1b}\\x\r\ny", "FAILEDx\ny"),
            ("\u{1b}(B\u{1b}7saved\u{1b}8", "saved"),
            ("\u{9b}31mred", "red"),
            ("\u{1b}]0;never ended\nnext line", "\nnext line"),
            ("\u{1b}[31", ""),
            ("\u{1b}", ""),
            ("a\0b\u{8}\u{7f}\u{85}c", "abc"),
            ("10%\r20%\rdone\r\nnext\t1", "10%\n20%\ndone\nnext\t1"),
            ("a\u{202e}b\u{e0041}c\u{2066}d", "abcd"),
            ("👩‍💻 café \u{fffd}", "👩‍💻 café \u{fffd}"),
        ] {
            assert_eq!(strip_control(text), expected, "{text:?}");
        }
    }

    #[test]
    fn keeps_the_last_version_of_overwritten_lines() {
        assert_eq!(strip_overwritten("\u{1b}[0;32mok\u{1b}[0m\n"), "ok\n");
        assert_eq!(strip_overwritten("Rebasing (1/3)\rRebasing (3/3)\rDone.\r\n"), "Done.\n");
        assert_eq!(strip_overwritten("a\nold\rnew\r"), "a\nnew");
        assert!(matches!(strip_overwritten("plain\ttext\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn visible_escapes_control_and_invisible_characters() {
        for (text, expected) in [
            ("plain\n\ttext é", "plain\n\ttext é"),
            ("\u{1b}[31mred\u{7}", "\\u{1b}[31mred\\u{7}"),
            ("a\rb\u{9b}2J", "a\\rb\\u{9b}2J"),
            ("x\u{202e}gnp.exe", "x\\u{202e}gnp.exe"),
        ] {
            assert_eq!(visible(text), expected);
        }
    }

    proptest! {
        #[test]
        fn removes_all_control_characters(text in "(\\PC|[\u{0}-\u{9f}]|\u{1b}[\\[\\]PX^_(]){0,60}") {
            let plain = strip_control(&text);
            prop_assert!(!plain.contains(|c: char| c.is_control() && c != '\n' && c != '\t'), "{plain:?}");
            prop_assert_eq!(strip_control(&plain), plain);
        }
    }
}
