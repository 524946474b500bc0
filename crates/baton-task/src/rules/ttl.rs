//! Parses retention times such as `7d` or `12h`.

use std::time::Duration;

use baton_core::Fault;

/// Parses a time to live: a whole number and `s`, `m`, `h`, `d` or `w`.
///
/// # Errors
///
/// `invalid_request` for `field`.
pub fn parse_ttl(field: &str, text: &str) -> Result<Duration, Fault> {
    let wrong = || Fault::invalid(field, format!("{text:?} must be a number and s, m, h, d or w, like 7d"));
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return Err(wrong()),
    };
    let digits = text.strip_suffix(unit).unwrap_or_default();
    if digits.is_empty() || digits.len() > 9 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(wrong());
    }
    let count: u64 = digits.parse().map_err(|_| wrong())?;
    Ok(Duration::from_secs(count.saturating_mul(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_converted() {
        let seconds = |text: &str| parse_ttl("ttl", text).map(|ttl| ttl.as_secs()).ok();
        assert_eq!(seconds("7d"), Some(604_800));
        assert_eq!((seconds("1w"), seconds("90m"), seconds("0s")), (Some(604_800), Some(5_400), Some(0)));
        for bad in ["", "d", "7", "-1d", "1.5h", "7 d", "99999999999d", "7ä"] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }
}
