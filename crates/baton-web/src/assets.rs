//! Static files of the dashboard, compiled into the binary.

use std::sync::LazyLock;

use baton_core::Sha256Hash;

/// A static file.
#[derive(Debug)]
pub struct Asset {
    /// File name in the URL.
    pub name: &'static str,
    /// Content type.
    pub kind: &'static str,
    pub body: &'static [u8],
}

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";

static ASSETS: [Asset; 7] = [
    Asset { name: "dashboard.css", kind: CSS, body: include_bytes!("../assets/dashboard.css") },
    Asset { name: "dashboard.js", kind: JAVASCRIPT, body: include_bytes!("../assets/dashboard.js") },
    Asset { name: "icon.svg", kind: "image/svg+xml", body: include_bytes!("../assets/icon.svg") },
    Asset { name: "htmx.js", kind: JAVASCRIPT, body: include_bytes!("../assets/vendor/htmx.min.js") },
    Asset { name: "htmx-sse.js", kind: JAVASCRIPT, body: include_bytes!("../assets/vendor/htmx-sse.min.js") },
    Asset { name: "uplot.js", kind: JAVASCRIPT, body: include_bytes!("../assets/vendor/uplot.min.js") },
    Asset { name: "uplot.css", kind: CSS, body: include_bytes!("../assets/vendor/uplot.min.css") },
];

/// Identifies the content of all files. Part of their URLs, so that browsers may keep them forever.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let all: Vec<u8> = ASSETS.iter().flat_map(|asset| asset.body).copied().collect();
    Sha256Hash::of(&all).to_string().chars().take(12).collect()
});

/// Returns the file with a name.
pub fn asset(name: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.name == name)
}

/// Returns the URL of a file.
pub(crate) fn url(name: &str) -> String {
    format!("/ui/assets/{name}?v={}", *VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendored_files_match_their_checksums() {
        let list = include_str!("../assets/vendor/README.md");
        let mut checked = 0;
        for line in list.lines().filter(|line| line.contains('@') && line.starts_with("| ")) {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let content = std::fs::read(format!("assets/vendor/{}", cells[1])).unwrap();
            assert_eq!(Sha256Hash::of(&content).to_string(), cells[3], "{}", cells[1]);
            assert!(std::fs::exists(format!("assets/vendor/{}", cells[4])).unwrap(), "{line}");
            checked += 1;
        }
        assert_eq!(checked, 4);
    }

    #[test]
    fn assets_leave_room_for_the_page_within_150_kilobytes() {
        let total: usize = ASSETS.iter().map(|asset| asset.body.len()).sum();
        assert!(total <= 135_000, "{total} bytes");
    }
}
