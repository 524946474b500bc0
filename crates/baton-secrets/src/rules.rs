//! The rules: their stable ids, and the literals that identify them.
//!
//! Owns the table. `scan` finds the literals, and `shapes` checks the text after them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// Kind of credential, serialized as its stable kebab-case id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Rule {
    /// An AWS access key id.
    AwsAccessKey,
    /// An AWS secret access key that is assigned to a matching name.
    AwsSecretKey,
    /// A Stripe key or webhook secret.
    StripeKey,
    /// A JSON Web Token.
    Jwt,
    /// A private key in PEM or PGP armour.
    PrivateKey,
    /// A GitHub token.
    GithubToken,
    /// A GitLab token.
    GitlabToken,
    /// A Slack token.
    SlackToken,
    /// A Slack incoming-webhook address.
    SlackWebhook,
    /// An Anthropic API key.
    AnthropicKey,
    /// An OpenAI API key.
    OpenaiKey,
    /// A Google API key.
    GoogleApiKey,
    /// A Google OAuth client secret or access token.
    GoogleOauth,
    /// An npm access token.
    NpmToken,
    /// A PyPI or TestPyPI upload token.
    PypiToken,
    /// The credential of an `Authorization`, `X-Api-Key` or `X-Relay-Key` header.
    BearerHeader,
    /// The password of a URL.
    UrlPassword,
    /// A Baton agent token.
    BatonToken,
    /// A token of another service, recognized by its published prefix and length.
    ServiceToken,
    /// A value that is assigned to a name that denotes a secret. A heuristic: the value is redacted, and the
    /// write is never rejected.
    AssignedSecret,
}

impl Rule {
    /// All rules, in the order of their definition.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the stable id used in markers, on the wire and in configuration.
    #[must_use]
    pub fn id(self) -> &'static str {
        self.into()
    }

    /// Returns a noun phrase for messages, such as `an AWS access key`.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::AwsAccessKey => "an AWS access key",
            Self::AwsSecretKey => "an AWS secret access key",
            Self::StripeKey => "a Stripe key or webhook secret",
            Self::Jwt => "a JSON Web Token",
            Self::PrivateKey => "a private key",
            Self::GithubToken => "a GitHub token",
            Self::GitlabToken => "a GitLab token",
            Self::SlackToken => "a Slack token",
            Self::SlackWebhook => "a Slack webhook address",
            Self::AnthropicKey => "an Anthropic API key",
            Self::OpenaiKey => "an OpenAI API key",
            Self::GoogleApiKey => "a Google API key",
            Self::GoogleOauth => "a Google OAuth secret or access token",
            Self::NpmToken => "an npm token",
            Self::PypiToken => "a PyPI upload token",
            Self::BearerHeader => "a credential in a request header",
            Self::UrlPassword => "a password in a URL",
            Self::BatonToken => "a Baton agent token",
            Self::ServiceToken => "a token of an online service",
            Self::AssignedSecret => "a secret recognized by its name",
        }
    }
}

/// A set of ASCII bytes that a credential is made of.
#[derive(Clone, Copy)]
pub(super) enum Class {
    /// `[0-9A-Fa-f]`
    Hex,
    /// `[0-9A-Z]`
    UpperDigit,
    /// `[0-9A-Za-z]`
    Alnum,
    /// `[0-9A-Za-z_]`
    Word,
    /// `[0-9A-Za-z-]`
    Dashed,
    /// `[0-9A-Za-z_-]`, base64url
    Slug,
    /// `[0-9A-Za-z._-]`
    Dotted,
    /// `[0-9A-Za-z+/]`
    Base64,
    /// `[0-9A-Za-z+/=]`
    PaddedBase64,
    /// `[0-9A-Za-z._~+/=-]`, the `token68` of HTTP authentication
    Token68,
}

impl Class {
    pub(super) const fn contains(self, byte: u8) -> bool {
        match self {
            Self::Hex => byte.is_ascii_hexdigit(),
            Self::UpperDigit => byte.is_ascii_digit() || byte.is_ascii_uppercase(),
            Self::Alnum => byte.is_ascii_alphanumeric(),
            Self::Word => byte.is_ascii_alphanumeric() || byte == b'_',
            Self::Dashed => byte.is_ascii_alphanumeric() || byte == b'-',
            Self::Slug => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Self::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
            Self::Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'),
            Self::PaddedBase64 => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='),
            Self::Token68 => {
                byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'~' | b'+' | b'/' | b'=' | b'-')
            }
        }
    }
}

/// Text that must precede or follow the literal of an anchor for the rule to match.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    /// A run of bytes, unless it is a mask such as `xxxx`.
    Token(Run),
    /// A run of bytes, masks included: the published pattern makes no exception for them.
    Pattern(Run),
    /// A second base64url segment, a dot and an optional signature.
    Jwt,
    /// Five dashes before, a private-key label and five dashes after, and the body.
    PrivateKey,
    /// The numbered parts of a Slack token.
    SlackToken,
    /// The workspace, channel and secret of a Slack webhook.
    SlackWebhook,
    /// An id, an underscore and a 256-bit secret.
    BatonToken,
    /// `Bearer` or `Basic` and a value.
    Authorization,
    /// A value.
    KeyHeader,
    /// A name that also contains AWS or access key, and a value.
    AwsSecret,
    /// `user:password@`.
    UrlPassword,
    /// A rule id and a bracket: the marker of a removed secret.
    Marker,
}

/// At least `min` bytes of `class`. All of them belong to the secret.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub(super) rule: Rule,
    pub(super) class: Class,
    pub(super) min: usize,
}

/// A literal to search for, and the format to check where it is found.
pub(super) struct Anchor {
    pub(super) literal: &'static str,
    pub(super) case: Case,
    pub(super) edge: Edge,
    pub(super) shape: Shape,
}

/// How the letter case of a literal is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    /// The literal matches as it is written.
    Exact,
    /// The literal matches in any letter case.
    Ignored,
}

/// Where a literal may begin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Edge {
    /// The literal must begin a word.
    Word,
    /// The literal may be inside a word.
    Any,
}

const fn token(rule: Rule, literal: &'static str, class: Class, min: usize) -> Anchor {
    shaped(literal, Shape::Token(Run { rule, class, min }))
}

/// A token of a service without a rule of its own.
const fn service(literal: &'static str, class: Class, min: usize) -> Anchor {
    token(Rule::ServiceToken, literal, class, min)
}

const fn pattern(rule: Rule, literal: &'static str, class: Class, min: usize) -> Anchor {
    shaped(literal, Shape::Pattern(Run { rule, class, min }))
}

const fn shaped(literal: &'static str, shape: Shape) -> Anchor {
    Anchor { literal, case: Case::Exact, edge: Edge::Word, shape }
}

const fn header(literal: &'static str, shape: Shape) -> Anchor {
    Anchor { literal, case: Case::Ignored, edge: Edge::Word, shape }
}

/// Opens the marker that replaces a secret.
pub(super) const MARKER_OPEN: &str = "[redacted:";

/// Every anchor, the more specific before the more general; at most 128, one bit each.
///
/// There are deliberately no maximum lengths: a longer run is redacted completely, and a run that a marker
/// truncates cannot start to match.
pub(super) const ANCHORS: &[Anchor] = &[
    Anchor { literal: MARKER_OPEN, case: Case::Exact, edge: Edge::Any, shape: Shape::Marker },
    Anchor { literal: "://", case: Case::Exact, edge: Edge::Any, shape: Shape::UrlPassword },
    Anchor { literal: "BEGIN ", case: Case::Exact, edge: Edge::Any, shape: Shape::PrivateKey },
    Anchor { literal: "secret", case: Case::Ignored, edge: Edge::Any, shape: Shape::AwsSecret },
    header("authorization", Shape::Authorization),
    header("x-api-key", Shape::KeyHeader),
    header("x-relay-key", Shape::KeyHeader),
    pattern(Rule::AwsAccessKey, "AKIA", Class::UpperDigit, 16),
    pattern(Rule::AwsAccessKey, "ASIA", Class::UpperDigit, 16),
    pattern(Rule::StripeKey, "sk_live_", Class::Alnum, 24),
    pattern(Rule::StripeKey, "rk_live_", Class::Alnum, 24),
    pattern(Rule::StripeKey, "sk_test_", Class::Alnum, 24),
    pattern(Rule::StripeKey, "rk_test_", Class::Alnum, 24),
    token(Rule::StripeKey, "whsec_", Class::PaddedBase64, 24),
    shaped("eyJ", Shape::Jwt),
    token(Rule::GithubToken, "ghp_", Class::Alnum, 36),
    token(Rule::GithubToken, "gho_", Class::Alnum, 36),
    token(Rule::GithubToken, "ghu_", Class::Alnum, 36),
    token(Rule::GithubToken, "ghs_", Class::Alnum, 36),
    token(Rule::GithubToken, "ghr_", Class::Alnum, 36),
    token(Rule::GithubToken, "github_pat_", Class::Word, 22),
    token(Rule::GitlabToken, "glpat-", Class::Slug, 20),
    token(Rule::GitlabToken, "gldt-", Class::Slug, 20),
    token(Rule::GitlabToken, "glrt-", Class::Slug, 20),
    token(Rule::GitlabToken, "glptt-", Class::Slug, 20),
    token(Rule::GitlabToken, "glcbt-", Class::Slug, 20),
    token(Rule::GitlabToken, "gloas-", Class::Slug, 20),
    token(Rule::GitlabToken, "glft-", Class::Slug, 20),
    token(Rule::GitlabToken, "glagent-", Class::Slug, 20),
    token(Rule::GitlabToken, "glsoat-", Class::Slug, 20),
    shaped("xoxb-", Shape::SlackToken),
    shaped("xoxp-", Shape::SlackToken),
    shaped("xoxa-", Shape::SlackToken),
    shaped("xoxr-", Shape::SlackToken),
    shaped("xoxs-", Shape::SlackToken),
    shaped("xoxe-", Shape::SlackToken),
    shaped("xapp-", Shape::SlackToken),
    shaped("https://hooks.slack.com/services/", Shape::SlackWebhook),
    token(Rule::AnthropicKey, "sk-ant-", Class::Slug, 20),
    token(Rule::OpenaiKey, "sk-proj-", Class::Slug, 20),
    token(Rule::OpenaiKey, "sk-svcacct-", Class::Slug, 20),
    token(Rule::OpenaiKey, "sk-admin-", Class::Slug, 20),
    service("sk-or-v1-", Class::Hex, 64),
    // Legacy keys, with or without the `T3BlbkFJ` in their middle, are 48 letters and digits.
    token(Rule::OpenaiKey, "sk-", Class::Alnum, 48),
    token(Rule::GoogleApiKey, "AIza", Class::Slug, 35),
    token(Rule::GoogleOauth, "GOCSPX-", Class::Slug, 28),
    token(Rule::GoogleOauth, "ya29.", Class::Slug, 20),
    token(Rule::NpmToken, "npm_", Class::Alnum, 36),
    // PyPI tokens are serialized macaroons; their start names the package index, pypi.org or test.pypi.org.
    token(Rule::PypiToken, "pypi-AgEIcHlwaS5vcmc", Class::Slug, 50),
    token(Rule::PypiToken, "pypi-AgENdGVzdC5weXBpLm9yZw", Class::Slug, 50),
    shaped("bt_", Shape::BatonToken),
    service("hf_", Class::Alnum, 34),
    service("api_org_", Class::Alnum, 34),
    service("dop_v1_", Class::Hex, 64),
    service("doo_v1_", Class::Hex, 64),
    service("dor_v1_", Class::Hex, 64),
    service("SG.", Class::Dotted, 66),
    service("shpat_", Class::Hex, 32),
    service("shpca_", Class::Hex, 32),
    service("shppa_", Class::Hex, 32),
    service("shpss_", Class::Hex, 32),
    service("glsa_", Class::Word, 41),
    service("glc_", Class::PaddedBase64, 32),
    service("lin_api_", Class::Alnum, 40),
    service("lin_oauth_", Class::Alnum, 40),
    service("hvs.", Class::Slug, 24),
    service("hvb.", Class::Slug, 24),
    service("pul-", Class::Hex, 40),
    service("rubygems_", Class::Hex, 48),
    service("dckr_pat_", Class::Slug, 27),
    service("dckr_oat_", Class::Slug, 27),
    service("dapi", Class::Hex, 32),
    service("PMAK-", Class::Dashed, 59),
    service("figd_", Class::Slug, 40),
    service("ATATT3", Class::Token68, 60),
    service("ATCTT3", Class::Token68, 60),
    service("ntn_", Class::Alnum, 40),
    service("sq0atp-", Class::Slug, 22),
    service("sq0csp-", Class::Slug, 43),
    service("NRAK-", Class::UpperDigit, 27),
    service("sntrys_", Class::Token68, 60),
    service("sntryu_", Class::Hex, 64),
    service("dp.pt.", Class::Alnum, 40),
    service("dp.st.", Class::Dotted, 40),
    service("dp.sa.", Class::Alnum, 40),
    service("pscale_tkn_", Class::Dotted, 32),
    service("pscale_pw_", Class::Dotted, 32),
    service("pscale_oauth_", Class::Dotted, 32),
    service("sbp_", Class::Hex, 40),
    service("nfp_", Class::Alnum, 36),
    service("CLOJARS_", Class::Alnum, 60),
    service("pnu_", Class::Alnum, 36),
    service("r8_", Class::Alnum, 37),
    service("gsk_", Class::Alnum, 50),
    service("xai-", Class::Alnum, 70),
    service("pplx-", Class::Alnum, 48),
    service("nvapi-", Class::Slug, 60),
    service("tgp_v1_", Class::Slug, 40),
    service("csk-", Class::Alnum, 48),
    service("tvly-", Class::Slug, 32),
    service("lsv2_", Class::Word, 40),
    service("e2b_", Class::Hex, 40),
    service("AGE-SECRET-KEY-1", Class::UpperDigit, 58),
    service("aio_", Class::Alnum, 28),
    service("EZAK", Class::Alnum, 54),
    service("EZTK", Class::Alnum, 54),
    service("duffel_live_", Class::Slug, 43),
    service("duffel_test_", Class::Slug, 43),
    service("dt0c01.", Class::Dotted, 89),
    service("FLWSECK-", Class::Hex, 32),
    service("FLWSECK_TEST-", Class::Hex, 32),
    service("rdme_", Class::Alnum, 70),
    service("shippo_live_", Class::Hex, 40),
    service("shippo_test_", Class::Hex, 40),
    service("tfp_", Class::Dotted, 59),
    service("sqp_", Class::Hex, 40),
    service("squ_", Class::Hex, 40),
    service("sqa_", Class::Hex, 40),
    service("bkua_", Class::Hex, 40),
    service("AKCp", Class::Alnum, 69),
    service("CFPAT-", Class::Slug, 43),
    service("HRKU-", Class::Slug, 36),
    service("tskey-", Class::Dashed, 24),
    service("sgp_", Class::Word, 40),
    service("phx_", Class::Alnum, 43),
    service("sk.eyJ", Class::Dotted, 60),
    service("ops_eyJ", Class::PaddedBase64, 100),
];
