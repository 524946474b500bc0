//! The retry delay that an endpoint asks for.

use std::time::Duration;

use jiff::Zoned;
use jiff::fmt::rfc2822;
use ureq::http::header::{DATE, RETRY_AFTER};
use ureq::http::{HeaderMap, HeaderName};

/// Maximum delay that is accepted: a wrong clock or a faulty endpoint must not stop the queue for a day.
const MAX_WAIT: Duration = Duration::from_secs(3_600);

/// Parses `Retry-After`, in seconds or as a date. A date is compared with the answer's `Date`, so that the local clock
/// does not matter; without `Date` it is ignored.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let then = rfc2822::parse(text).ok()?;
            Duration::try_from(then.duration_since(&date(headers, DATE)?)).unwrap_or_default()
        }
    };
    Some(wait.min(MAX_WAIT))
}

fn date(headers: &HeaderMap, name: HeaderName) -> Option<Zoned> {
    rfc2822::parse(headers.get(name)?.to_str().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use ureq::http::HeaderValue;

    use super::*;

    fn wait(retry_after: &'static str, date: Option<&'static str>) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_static(retry_after));
        if let Some(date) = date {
            headers.insert(DATE, HeaderValue::from_static(date));
        }
        super::retry_after(&headers).map(|wait| wait.as_secs())
    }

    #[test]
    fn seconds_and_dates_are_understood_and_bounded() {
        let now = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(wait("30", None), Some(30));
        assert_eq!(wait(" 0 ", now), Some(0));
        assert_eq!(wait("86400", None), Some(3_600));
        assert_eq!(wait("Sun, 06 Nov 1994 08:50:07 GMT", now), Some(30));
        assert_eq!(wait("Sun, 06 Nov 1994 08:00:00 GMT", now), Some(0));
        assert_eq!(wait("Mon, 07 Nov 1994 08:50:07 GMT", now), Some(3_600));
        assert_eq!(wait("Sun, 06 Nov 1994 08:50:07 GMT", None), None);
        for nonsense in ["soon", "-1", "1.5", ""] {
            assert_eq!(wait(nonsense, now), None, "{nonsense}");
        }
        assert_eq!(super::retry_after(&HeaderMap::new()), None);
    }
}
