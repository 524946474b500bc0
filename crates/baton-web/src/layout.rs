//! The frame of every page: head, navigation, theme, keyboard help; sign-in and error pages.

use baton_core::{ErrorCode, visible};
use maud::{DOCTYPE, Markup, html};
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::assets::url;
use crate::pages::{PageContent, pages};
use crate::visitor::Problem;

/// Colour theme chosen by the visitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Theme {
    /// The theme of the operating system.
    #[default]
    System,
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

impl Theme {
    /// Returns the value of the cookie.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Reads the value of the cookie.
    pub fn from_wire(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    const fn label(self) -> &'static str {
        match self {
            Self::System => "Auto",
            Self::Light => "Light",
            Self::Dark => "Dark",
        }
    }
}

/// Configuration of htmx. Nothing is evaluated and no styles are added, as the content security policy demands.
const HTMX_CONFIG: &str = r#"{"allowEval":false,"includeIndicatorStyles":false,"allowScriptTags":false,"selfRequestsOnly":true,"historyCacheSize":0,"refreshOnHistoryMiss":true}"#;

/// Renders a page.
pub fn page(content: &PageContent, path: &str, theme: Theme) -> String {
    let body = html! {
        header.bar {
            a.brand href="/" { img src=(url("icon.svg")) alt="" width="22" height="22"; span { "Baton" } }
            nav aria-label="Pages" {
                @for page in pages().iter().filter(|page| page.name.is_some()) {
                    a href=(page.path) data-key=[page.key] aria-current=[is_current(page.path, path).then_some("page")] {
                        (page.name.unwrap_or_default())
                    }
                }
            }
            div.tools {
                form.theme method="post" action="/ui/theme" aria-label="Theme" {
                    input type="hidden" name="back" value=(path);
                    @for &choice in Theme::VARIANTS {
                        button name="theme" value=(choice.as_str()) aria-pressed=(if choice == theme { "true" } else { "false" }) {
                            (choice.label())
                        }
                    }
                }
                form method="post" action="/ui/signout" {
                    button.quiet { "Sign out" }
                }
            }
        }
        main id="main" tabindex="-1" hx-ext=[content.is_live.then_some("sse")] sse-connect=[content.is_live.then_some("/ui/events")] {
            (content.body)
        }
        footer {
            a href=(content.json) { "This page as JSON" }
            @for (name, json) in &content.other_json { a href=(json) { (name) " as JSON" } }
            a href="/docs" { "API" }
            button.quiet id="show-keys" type="button" { "Keyboard " kbd { "?" } }
        }
        (keyboard_help())
    };
    let libraries = [
        (content.has_plot, "uplot.js"),
        (content.is_live || content.has_swaps, "htmx.js"),
        (content.is_live, "htmx-sse.js"),
    ];
    let libraries: Vec<&str> =
        libraries.into_iter().filter(|(is_used, _)| *is_used).map(|(_, name)| name).collect();
    frame(&content.title, theme, &libraries, &body)
}

/// Returns true if a page, or a page below it, is shown.
fn is_current(page: &str, path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    path == page || page != "/" && path.strip_prefix(page).is_some_and(|rest| rest.starts_with('/'))
}

fn keyboard_help() -> Markup {
    let keys = [
        ("/", "Search"),
        ("j", "Next entry"),
        ("k", "Previous entry"),
        ("Enter", "Open the entry"),
        ("?", "Show or hide this help"),
        ("Esc", "Close this help, leave a field"),
    ];
    html! {
        dialog id="keys" aria-labelledby="keys-title" {
            h2 id="keys-title" { "Keyboard" }
            dl {
                @for (key, meaning) in keys { div { dt { kbd { (key) } } dd { (meaning) } } }
                @for page in pages() {
                    @if let (Some(key), Some(name)) = (page.key, page.name) {
                        div { dt { kbd { "g" } " " kbd { (key) } } dd { (name) } }
                    }
                }
            }
            form method="dialog" { button { "Close" } }
        }
    }
}

fn frame(title: &str, theme: Theme, libraries: &[&str], content: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" data-theme=(theme.as_str()) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="htmx-config" content=(HTMX_CONFIG);
                title { (title) " · Baton" }
                link rel="icon" href=(url("icon.svg")) type="image/svg+xml";
                link rel="stylesheet" href=(url("dashboard.css"));
                @if libraries.contains(&"uplot.js") { link rel="stylesheet" href=(url("uplot.css")); }
                @for library in libraries { script src=(url(library)) defer {} }
                script src=(url("dashboard.js")) defer {}
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                (content)
            }
        }
    };
    // Text of agents and users can be anywhere in the page.
    visible(&page.into_string()).into_owned()
}

/// Renders the sign-in page. `next` is the page to show after sign-in.
pub fn sign_in_page(next: &str, problem: Option<&str>, theme: Theme) -> String {
    let content = html! {
        main.alone id="main" tabindex="-1" {
            img src=(url("icon.svg")) alt="" width="40" height="40";
            h1 { "Sign in to Baton" }
            @if let Some(problem) = problem { p.problem role="alert" { (problem) } }
            p {
                "On the machine of the server, run " code { "baton open" }
                " and open the link that it prints. " code { "baton serve" } " prints one too."
            }
            form.stack method="post" action="/ui/signin" {
                input type="hidden" name="next" value=(next);
                label for="credential" { "Or paste an access token" }
                input id="credential" name="credential" type="password" autocomplete="off" required placeholder="bt_…";
                p.hint { "Create one with " code { "baton token create --name dashboard" } ". The dashboard then shows what the token can access." }
                button.primary { "Sign in" }
            }
        }
    };
    frame("Sign in", theme, &[], &content)
}

/// Renders the page after signing in, which leads to `next`.
pub fn signed_in_page(next: &str, theme: Theme) -> String {
    let content = html! {
        meta http-equiv="refresh" content=(format!("0; url={next}"));
        main.alone id="main" { h1 { "Signed in" } p { a href=(next) { "Continue to the dashboard" } } }
    };
    frame("Signed in", theme, &[], &content)
}

/// Renders a page about a problem.
pub fn error_page(problem: &Problem, theme: Theme) -> String {
    let title = match problem.code.status() {
        _ if problem.code == ErrorCode::Overloaded => "Too many requests",
        400 | 422 => "Invalid input",
        403 => "No access",
        404 => "Not found",
        409 => "Not possible now",
        429 => "Too many requests",
        503 => "The store is unavailable",
        500.. => "Internal error",
        _ => "Request failed",
    };
    let content = html! {
        main.alone id="main" tabindex="-1" {
            img src=(url("icon.svg")) alt="" width="40" height="40";
            h1 { (title) }
            p.problem role="alert" { (problem.message) }
            // Hints about missing records and the store are for the command line.
            @match problem.code.status() {
                404 => {},
                503 if problem.code == ErrorCode::StoreUnavailable => p { "Run " code { "baton doctor" } " to see why. Hooks keep their reports and replay them when the store is back." },
                _ => @if let Some(hint) = &problem.hint { p { (hint) } },
            }
            p { a href="/" { "Go to the start page" } }
        }
    };
    frame(title, theme, &[], &content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_visible_anywhere_in_a_page() {
        let problem = Problem {
            code: ErrorCode::SessionNotFound,
            message: "there is no sess_\u{202e}\u{1b}".to_owned(),
            hint: Some("start one".to_owned()),
        };
        let shown = error_page(&problem, Theme::System);
        assert!(shown.contains("there is no sess_\\u{202e}\\u{1b}"), "{shown}");
        assert!(shown.contains("<h1>Not found</h1>") && !shown.contains("start one"), "{shown}");
    }
}
