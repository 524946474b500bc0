//! Every fake secret is built at run time, so that no scanner reports this file.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::*;

/// Returns `length` letters and digits that look random.
pub(super) fn fill(length: usize) -> String {
    "q7Rk2VbN9xLwT4mZcY8dHs3JfG6pXa5E".chars().cycle().take(length).collect()
}

fn upper(length: usize) -> String {
    fill(length).to_uppercase()
}

fn hex(length: usize) -> String {
    "7f3a09c1e5b8d246".chars().cycle().take(length).collect()
}

/// Tokens of services, each with the shortest body that counts.
fn service_tokens() -> Vec<String> {
    let heads_and_bodies = [
        (["h", "f_"], fill(34)),
        (["api_", "org_"], fill(34)),
        (["dop", "_v1_"], hex(64)),
        (["doo", "_v1_"], hex(64)),
        (["dor", "_v1_"], hex(64)),
        (["S", "G."], fill(66)),
        (["shp", "at_"], hex(32)),
        (["shp", "ca_"], hex(32)),
        (["shp", "pa_"], hex(32)),
        (["shp", "ss_"], hex(32)),
        (["gl", "sa_"], fill(41)),
        (["gl", "c_"], fill(32)),
        (["lin_", "api_"], fill(40)),
        (["lin_o", "auth_"], fill(40)),
        (["hv", "s."], fill(24)),
        (["hv", "b."], fill(24)),
        (["pu", "l-"], hex(40)),
        (["ruby", "gems_"], hex(48)),
        (["dckr", "_pat_"], fill(27)),
        (["dckr", "_oat_"], fill(27)),
        (["da", "pi"], hex(32)),
        (["PM", "AK-"], fill(59)),
        (["fi", "gd_"], fill(40)),
        (["ATA", "TT3"], fill(60)),
        (["ATC", "TT3"], fill(60)),
        (["nt", "n_"], fill(40)),
        (["sq0", "atp-"], fill(22)),
        (["sq0", "csp-"], fill(43)),
        (["NR", "AK-"], upper(27)),
        (["snt", "rys_"], fill(60)),
        (["snt", "ryu_"], hex(64)),
        (["dp.", "pt."], fill(40)),
        (["dp.", "st."], fill(40)),
        (["dp.", "sa."], fill(40)),
        (["pscal", "e_tkn_"], fill(32)),
        (["pscal", "e_pw_"], fill(32)),
        (["pscale", "_oauth_"], fill(32)),
        (["sb", "p_"], hex(40)),
        (["nf", "p_"], fill(36)),
        (["CLOJ", "ARS_"], fill(60)),
        (["pn", "u_"], fill(36)),
        (["r", "8_"], fill(37)),
        (["gs", "k_"], fill(50)),
        (["xa", "i-"], fill(70)),
        (["pp", "lx-"], fill(48)),
        (["sk-o", "r-v1-"], hex(64)),
        (["nva", "pi-"], fill(60)),
        (["tgp", "_v1_"], fill(40)),
        (["cs", "k-"], fill(48)),
        (["tv", "ly-"], fill(32)),
        (["ls", "v2_"], fill(40)),
        (["e2", "b_"], hex(40)),
        (["AGE-SECR", "ET-KEY-1"], upper(58)),
        (["ai", "o_"], fill(28)),
        (["EZ", "AK"], fill(54)),
        (["EZ", "TK"], fill(54)),
        (["duffel", "_live_"], fill(43)),
        (["duffel", "_test_"], fill(43)),
        (["dt0", "c01."], fill(89)),
        (["FLWS", "ECK-"], hex(32)),
        (["FLWSEC", "K_TEST-"], hex(32)),
        (["rd", "me_"], fill(70)),
        (["shippo", "_live_"], hex(40)),
        (["shippo", "_test_"], hex(40)),
        (["tf", "p_"], fill(59)),
        (["sq", "p_"], hex(40)),
        (["sq", "u_"], hex(40)),
        (["sq", "a_"], hex(40)),
        (["bk", "ua_"], hex(40)),
        (["AK", "Cp"], fill(69)),
        (["CFP", "AT-"], fill(43)),
        (["HR", "KU-"], fill(36)),
        (["tsk", "ey-"], fill(24)),
        (["sg", "p_"], fill(40)),
        (["ph", "x_"], fill(43)),
        (["sk.", "eyJ"], fill(60)),
        (["ops", "_eyJ"], fill(100)),
    ];
    heads_and_bodies.into_iter().map(|(head, body)| head.concat() + &body).collect()
}

fn token(head: [&str; 2], length: usize) -> String {
    format!("{}{}", head.concat(), fill(length))
}

fn jwt() -> String {
    format!("{0}hbGciOiJIUzI1NiJ9.{0}zdWIiOiIxIn0.{1}", ["ey", "J"].concat(), fill(43))
}

fn pem(label: &str, line_break: &str) -> String {
    let (begin, end) = (["-----BEG", "IN"].concat(), ["-----E", "ND"].concat());
    [format!("{begin} {label}-----"), fill(64), fill(64), fill(20) + "==", format!("{end} {label}-----")]
        .join(line_break)
}

/// One or more examples of each rule whose span is the whole string.
pub(super) fn whole_secrets() -> Vec<(Rule, String)> {
    let pypi = ["pypi-AgEIcHlw", "aS5vcmc"];
    let test_pypi = ["pypi-AgENdGVzdC5", "weXBpLm9yZw"];
    vec![
        (Rule::AwsAccessKey, format!("{}{}", ["AK", "IA"].concat(), upper(16))),
        (Rule::AwsAccessKey, format!("{}{}", ["AS", "IA"].concat(), upper(16))),
        (Rule::AwsAccessKey, format!("{}{}", ["AK", "IA"].concat(), upper(30))),
        (Rule::StripeKey, token(["sk_", "live_"], 24)),
        (Rule::StripeKey, token(["sk_", "live_"], 99)),
        (Rule::StripeKey, format!("{}{}", ["sk_", "live_"].concat(), "x".repeat(24))),
        (Rule::StripeKey, token(["rk_", "live_"], 24)),
        (Rule::StripeKey, token(["sk_", "test_"], 24)),
        (Rule::StripeKey, token(["wh", "sec_"], 32)),
        (Rule::ServiceToken, token(["h", "f_"], 34)),
        (Rule::Jwt, jwt()),
        (Rule::Jwt, format!("{0}a.{0}b.", ["ey", "J"].concat())),
        (Rule::PrivateKey, pem("PRIVATE KEY", "\n")),
        (Rule::PrivateKey, pem("RSA PRIVATE KEY", "\r\n")),
        (Rule::PrivateKey, pem("DSA PRIVATE KEY", "\n+")),
        (Rule::PrivateKey, pem("EC PRIVATE KEY", "\\n")),
        (Rule::PrivateKey, pem("OPENSSH PRIVATE KEY", "\n    ")),
        (Rule::PrivateKey, pem("ENCRYPTED PRIVATE KEY", "\n12\t")),
        (Rule::PrivateKey, pem("PGP PRIVATE KEY BLOCK", "\nComment: x\n")),
        (Rule::GithubToken, token(["gh", "p_"], 36)),
        (Rule::GithubToken, token(["gh", "o_"], 36)),
        (Rule::GithubToken, token(["gh", "u_"], 36)),
        (Rule::GithubToken, token(["gh", "s_"], 40)),
        (Rule::GithubToken, token(["gh", "r_"], 76)),
        (Rule::GithubToken, format!("{}_{}", token(["github", "_pat_"], 22), fill(59))),
        (Rule::GitlabToken, token(["gl", "pat-"], 20)),
        (Rule::GitlabToken, token(["gl", "dt-"], 20)),
        (Rule::GitlabToken, token(["gl", "rt-"], 20)),
        (Rule::GitlabToken, token(["gl", "ptt-"], 40)),
        (Rule::GitlabToken, token(["gl", "cbt-"], 20)),
        (Rule::GitlabToken, token(["gl", "oas-"], 64)),
        (Rule::GitlabToken, token(["gl", "ft-"], 20)),
        (Rule::GitlabToken, token(["gl", "agent-"], 50)),
        (Rule::GitlabToken, token(["gl", "soat-"], 20)),
        (Rule::SlackToken, token(["xo", "xb-123456789012-"], 24)),
        (Rule::SlackToken, token(["xo", "xp-123456789012-123456789012-"], 32)),
        (Rule::SlackToken, token(["xo", "xa-2-"], 32)),
        (Rule::SlackToken, token(["xo", "xr-2-"], 32)),
        (Rule::SlackToken, token(["xo", "xs-2-"], 32)),
        (Rule::SlackToken, token(["xo", "xe-1-"], 32)),
        (Rule::SlackToken, token(["xa", "pp-1-A01-12-"], 64)),
        (Rule::SlackWebhook, token(["https://hooks.slack.com/ser", "vices/T0123ABCD/B0123ABCD/"], 24)),
        (Rule::AnthropicKey, token(["sk-", "ant-api03-"], 95)),
        (Rule::OpenaiKey, token(["sk-", "proj-"], 48)),
        (Rule::OpenaiKey, token(["sk-", "svcacct-"], 48)),
        (Rule::OpenaiKey, token(["sk-", "admin-"], 48)),
        (Rule::OpenaiKey, format!("{}T3Blbk{}{}", token(["sk", "-"], 20), "FJ", fill(20))),
        (Rule::OpenaiKey, token(["sk", "-"], 48)),
        (Rule::GoogleApiKey, token(["AI", "za"], 35)),
        (Rule::GoogleOauth, token(["GOC", "SPX-"], 28)),
        (Rule::GoogleOauth, token(["ya", "29."], 120)),
        (Rule::NpmToken, token(["np", "m_"], 36)),
        (Rule::PypiToken, token(pypi, 120)),
        (Rule::PypiToken, token(test_pypi, 120)),
        (Rule::BatonToken, format!("{}_{}", token(["b", "t_"], 16), fill(43))),
        (Rule::BatonToken, format!("{}_{}", token(["b", "t_"], 8), "0a".repeat(32))),
    ]
}

/// Examples of the rules that need context: the rule, what comes before the secret, the secret, what follows.
pub(super) fn secrets_in_context() -> Vec<(Rule, &'static str, String, &'static str)> {
    let (header, url, aws) = (Rule::BearerHeader, Rule::UrlPassword, Rule::AwsSecretKey);
    vec![
        (header, "Authorization: Bearer ", fill(16), ""),
        (header, "curl -H 'authorization: bearer ", fill(16), "' https://example.com"),
        (header, "{\"authorization\":\"Bearer ", fill(40) + "._~+/==", "\"}"),
        (header, "{\\\"Authorization\\\": \\\"Bearer ", fill(40), "\\\"}"),
        (header, "req.header(\"Authorization\", \"Bearer ", fill(32), "\")"),
        (header, "Proxy-Authorization: Basic ", fill(24) + "==", "\r\n"),
        (header, "X-Relay-Key: ", fill(16), "\n"),
        (header, "x-api-key: ", fill(32), ""),
        (header, "headers['X-Api-Key'] = '", fill(32), "'"),
        (header, "{'x-api-key': ", fill(32), "}"),
        (url, "postgres://user:", "secret".to_owned(), "@host/db"),
        (url, "redis://:", "hunter2".to_owned(), "@127.0.0.1:6379"),
        (url, "amqp://svc:", "p@ss".to_owned(), "@mq"),
        (url, "mongodb+srv://svc:", "pä$s[w]rd".to_owned(), "@cluster.example.net/x?y=z"),
        (url, "see https://bob:", "%40bc".to_owned(), "@example.com, or not"),
        (aws, "aws_secret_access_key = ", fill(38) + "/+", "\n"),
        (aws, "export AWS_SECRET_ACCESS_KEY=\"", fill(40), "\""),
        (aws, "\"SecretAccessKey\": \"", fill(40), "\","),
        (aws, "awsSecretKey: '", fill(40), "'"),
        (aws, "AWS Secret Access Key [None]: ", fill(40), ""),
        (aws, "--aws-secret-access-key ", fill(40), " --region eu"),
        (aws, "TF_VAR_aws_secret_prod=", fill(40), ""),
    ]
}

fn rules_in(text: &str) -> Vec<Rule> {
    scan(text).into_iter().map(|finding| finding.rule).collect()
}

#[test]
fn every_rule_finds_its_complete_secrets() {
    let edges =
        [("", ""), ("key=", "\n"), ("\"", "\","), ("é", "é"), ("`", "`."), ("a\\n", "\\n"), ("%3D", "&b=1")];
    let colours = [("\x1b[01;31m\x1b[K", "\x1b[m"), ("\\u001b[32m", "\\u001b[0m"), ("\\u0022", "\\u0022")];
    for (rule, secret) in whole_secrets() {
        for (before, after) in edges.into_iter().chain(colours) {
            let text = format!("{before}{secret}{after}");
            let expected = Finding { rule, start: before.len(), end: before.len() + secret.len() };
            assert_eq!(scan(&text), [expected], "{text}");
            assert!(contains_secret(&text));
            assert_eq!(redact(&text), format!("{before}[redacted:{}]{after}", rule.id()));
        }
    }
}

#[test]
fn secret_is_redacted_and_its_context_is_kept() {
    for (rule, before, secret, after) in secrets_in_context() {
        let text = format!("{before}{secret}{after}");
        assert_eq!(redact(&text), format!("{before}[redacted:{}]{after}", rule.id()), "{text}");
    }
}

#[test]
fn every_rule_has_an_example_and_its_id_in_json() {
    let mut exampled: Vec<Rule> = whole_secrets().into_iter().map(|(rule, _)| rule).collect();
    exampled.extend(secrets_in_context().into_iter().map(|(rule, ..)| rule));
    // The examples of this rule are in `assignment_tests.rs`.
    exampled.push(Rule::AssignedSecret);
    for rule in Rule::ALL.iter().copied() {
        assert!(exampled.contains(&rule), "{} has no example", rule.id());
        assert_eq!(serde_json::to_value(rule).unwrap(), json!(rule.id()));
        assert!(rule.describe().starts_with('a'));
    }
}

#[test]
fn tokens_of_services_are_found_and_shorter_ones_are_not() {
    for token in service_tokens() {
        let whole = Finding { rule: Rule::ServiceToken, start: 0, end: token.len() };
        assert_eq!(scan(&token), [whole], "{token}");
        assert_eq!(scan(&token[..token.len() - 1]), [], "{token}");
        assert_eq!(redact(&format!("export T={token};")), "export T=[redacted:service-token];");
    }
}

#[test]
fn words_that_contain_a_literal_are_not_secrets() {
    for (_, secret) in whole_secrets().into_iter().filter(|(rule, _)| *rule != Rule::PrivateKey) {
        for text in [format!("a{secret}"), format!("Z9{secret}")] {
            let found = scan(&text);
            assert!(found.iter().all(|finding| finding.start > 2), "{text}: {found:?}");
        }
    }
}

#[test]
fn run_that_is_one_byte_too_short_is_not_a_secret() {
    let short = [
        format!("{}{}", ["AK", "IA"].concat(), upper(15)),
        token(["sk_", "live_"], 23),
        token(["gh", "p_"], 35),
        token(["github", "_pat_"], 21),
        token(["gl", "pat-"], 19),
        token(["sk-", "ant-"], 19),
        token(["sk", "-"], 47),
        token(["AI", "za"], 34),
        token(["np", "m_"], 35),
        format!("{}_{}", token(["b", "t_"], 16), fill(42)),
        format!("{}_{}", token(["b", "t_"], 7), fill(43)),
        format!("Authorization: Bearer {}", fill(15)),
        format!("aws_secret_access_key={}", fill(39)),
        format!("{0}a.{0}b", ["ey", "J"].concat()),
        format!("{0}.{0}.", ["ey", "J"].concat()),
    ];
    for text in short {
        assert_eq!(scan(&text), [], "{text}");
    }
}

#[test]
fn ordinary_text_has_no_findings() {
    let long_base64 = "TG9yZW0gaXBzdW0gZG9sb3Igc2l0IGFtZXQs/GhwX2FiY2Q+".repeat(40);
    let source_map = format!("//# sourceMappingURL=data:application/json;base64,{}{long_base64}", "eyJ");
    let after_marker = format!("[redacted:aws-secret-key] {}", fill(40));
    let clean = [
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "aws_secret_rotation_commit = da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "aws secret: src/providers/aws/secrets/manager/implementation/store",
        "f47ac10b-58cc-4372-a567-0e02b2c3d479 sess_01ARZ3NDEKTSV4RRFFQ69G5FAV ho_01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "let task_live_count = disk_live_bytes(ghp_client, npm_config_registry, sk_test_mode);",
        "!function(e,t){\"object\"==typeof exports?module.exports=t():e.x=t()}(this,(()=>{sk=1;eyJ=2;bt_=3}));",
        "risk-assessment-of-the-authorization-service task-proj-abcdefghijklmnopqrstuvwxyz",
        "docs: git@github.com:owner/name.git https://example.com:8080/a@b ssh://git@host:22/x user:pass@host",
        "docker://alpine:3.18@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "SHA256:uNiVztksCsDhcc0u9e8BgrJXVGDJWsk7yv3sV4eTdJQ integrity sha512-q7Rk2VbN9xLwT4mZcY8dHs3JfG6pXa5E==",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n-----BEGIN PUBLIC KEY-----\nMIIB\n",
        "--------------------------------------------------------------------------------",
        "[redacted:jwt] [redacted:aws-secret-key] and [redacted:whatever]",
        after_marker.as_str(),
        long_base64.as_str(),
        source_map.as_str(),
    ];
    for text in clean {
        assert_eq!(scan(text), [], "{text}");
        assert!(matches!(redact(text), Cow::Borrowed(_)) && !contains_secret(text));
    }
}

#[test]
fn placeholders_have_no_findings() {
    let masks = [["gh", "p_"], ["sk-", "ant-"], ["gl", "pat-"], ["AI", "za"]];
    for head in masks {
        assert_eq!(scan(&format!("{}{}", head.concat(), "x".repeat(40))), []);
    }
    for value in [
        "$TOKEN",
        "<token>",
        "***",
        "xxxxxxxxxxxxxxxxxxxx",
        "{{ relay_key }}",
        "${TOKEN}",
        "YOUR_ACCESS_TOKEN_HERE",
    ] {
        assert_eq!(scan(&format!("Authorization: Bearer {value}")), [], "{value}");
        assert_eq!(scan(&format!("X-Relay-Key: {value}")), [], "{value}");
    }
    for value in [
        "password",
        "PASSWORD",
        "pass",
        "***",
        "••••",
        "xxxx",
        "$VAR",
        "${VAR}",
        "$(pass db)",
        "<password>",
        "{password}",
        "[password]",
        "%s",
        "%PASS%",
        "",
    ] {
        assert_eq!(scan(&format!("postgres://user:{value}@host/db")), [], "{value}");
    }
    let code = [
        "headers: { 'x-api-key': process.env.ANTHROPIC_API_KEY, Authorization: `Bearer ${token}` }",
        "request.header(\"x-api-key\", configured_api_key_of_tenant)",
        "the x-api-key authentication-header-of-the-service is required",
        "Authorization: Bearer authentication",
        "slack: xoxb-your-bot-token-here",
    ];
    for text in code {
        assert_eq!(scan(text), [], "{text}");
    }
}

#[test]
fn examples_from_documentation_have_no_findings() {
    for text in [
        "AKIAIOSFODNN7EXAMPLE",
        "aws_access_key_id = ASIAIOSFODNN7EXAMPLE",
        "AWS_ACCESS_KEY_ID=AKIAI44QH8DHBEXAMPLE\nAWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "{\"SecretAccessKey\": \"je7MtGbClwBF/2Zp9Utk/h3yCo8nvbEXAMPLEKEY\"}",
        "postgres://postgres:postgres@localhost:5432/app",
        "postgres://postgres:postgres@localhost",
        "amqp://guest:guest@127.0.0.1/",
        "mysql://root:root@[::1]:3306/app",
        "postgres://postgres:mysecretpassword@db/app",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ\
         .SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
    ] {
        assert_eq!(scan(text), [], "{text}");
        assert_eq!(redact(text), text);
    }
    let json = json!({ "aws_secret_access_key": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY" });
    assert_eq!(super::scan_json(&json), []);
    for (text, rule) in [
        (format!("AKIA{}", "IOSFODNN7EXAMPLEX"), Rule::AwsAccessKey),
        (format!("AKIA{}", "IOSFODNN7EXAMPLQ"), Rule::AwsAccessKey),
        ("postgres://postgres:postgres@db.example.com/app".to_owned(), Rule::UrlPassword),
        ("postgres://postgres:postgres@localhost.example.com/app".to_owned(), Rule::UrlPassword),
        ("postgres://app:postgres@localhost/app".to_owned(), Rule::UrlPassword),
    ] {
        assert_eq!(rules_in(&text), [rule], "{text}");
    }
}

#[test]
fn a_private_key_without_its_closing_line_ends_with_its_body() {
    let begin = format!("{} RSA PRIVATE KEY-----", ["-----BEG", "IN"].concat());
    let headers = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n";
    let cases = [
        (format!("{begin}\n{}\n{}\n", fill(64), fill(12)), "!rest"),
        (format!("{begin}\\n{}\\n{}", fill(64), fill(64)), "\" and so on"),
        (format!("{begin}\n{headers}{}", fill(64)), "…"),
        (format!("{begin}\\n\"\n  \"{}", fill(64)), "\\n\";"),
        (begin.clone(), " opens a private key"),
    ];
    for (secret, rest) in cases {
        let text = format!("{secret}{rest}");
        let clean = redact(&text);
        assert_eq!(
            clean.trim_start_matches("[redacted:private-key]").trim_start(),
            rest.trim_start(),
            "{text}"
        );
    }
    let two = format!("{begin}\n{}\n{}", fill(64), pem("EC PRIVATE KEY", "\n"));
    assert_eq!(rules_in(&two), [Rule::PrivateKey, Rule::PrivateKey]);
}

#[test]
fn adjacent_and_nested_secrets_are_separate_findings() {
    let github = token(["gh", "p_"], 36);
    let aws = format!("{}{}", ["AK", "IA"].concat(), upper(16));
    assert_eq!(rules_in(&format!("{aws}{github}")), [Rule::AwsAccessKey, Rule::GithubToken]);
    assert_eq!(
        rules_in(&format!("https://{github}:hunter2@github.com")),
        [Rule::GithubToken, Rule::UrlPassword]
    );
    assert_eq!(rules_in(&format!("https://{github}:x-oauth-basic@github.com")), [Rule::GithubToken]);
    assert_eq!(rules_in(&format!("https://x-access-token:{github}@github.com")), [Rule::GithubToken]);
    let joined = format!("{}-{github}", token(["xo", "xb-123456789012-"], 24));
    assert_eq!(scan(&joined), [Finding { rule: Rule::SlackToken, start: 0, end: joined.len() }]);
    assert_eq!(rules_in(&format!("Authorization: Bearer {}", jwt())), [Rule::Jwt]);
    assert_eq!(rules_in(&format!("Authorization: Bearer abc.{}", jwt())), [Rule::BearerHeader]);
}

#[test]
fn bytes_that_are_not_text_are_scanned_too() {
    let secret = token(["gh", "p_"], 36);
    let bytes = [b"\xff\x00", secret.as_bytes(), b"\xfe"].concat();
    assert_eq!(scan_bytes(&bytes), [Finding { rule: Rule::GithubToken, start: 2, end: 2 + secret.len() }]);
    assert_eq!(redact_bytes(&bytes).as_ref(), b"\xff\x00[redacted:github-token]\xfe");
    assert!(matches!(redact_bytes(b"\xff\xfe"), Cow::Borrowed(_)));
}

#[test]
fn hostile_text_takes_linear_time() {
    let private_key = ["-----BEGIN PRIVATE", " KEY-----"].concat();
    let heads = ["-eyJ", "xoxb-", "x-api-key=your", "a://b:", "aws_secret=", &private_key, "[redacted:"];
    // In linear time this takes seconds even without optimization; in quadratic time it would take hours, and the test
    // runner ends a test after ten minutes.
    let findings = heads.map(|head| scan(&head.repeat(4_000_000 / head.len())).len());
    assert_eq!(findings, [0, 0, 0, 0, 0, 148_148, 0]);
}

#[test]
fn json_findings_name_path_rule_and_place() {
    let secret = token(["gh", "p_"], 36);
    let document = json!({
        "handoff": { "work_completed": [format!("ok\npushed ä {secret}")], "a.b": [[secret.clone()]] },
        "z": { secret.clone(): { "deep": secret.clone() } },
    });
    let rule = Rule::GithubToken;
    let at = |path: &str, line, column| JsonFinding { path: path.to_owned(), rule, line, column };
    let expected = [
        at("handoff[\"a.b\"][0][0]", 1, 1),
        at("handoff.work_completed[0]", 2, 10),
        at("z", 1, 1),
        at("z[\"[redacted:github-token]\"].deep", 1, 1),
    ];
    assert_eq!(scan_json(&document), expected);
    assert_eq!(scan_json(&Value::String(secret.clone())), [at("$", 1, 1)]);
    let shown = format!("{:?}{:?}", scan(&secret), expected) + &serde_json::to_string(&expected).unwrap();
    assert!(shown.contains("\"rule\":\"github-token\"") && !shown.contains(&fill(20)));
}

#[test]
fn json_entries_are_judged_with_their_names() {
    let mut document = json!({
        "headers": { "Authorization": format!("Bearer {}", fill(20)), "X-API-Key": [fill(16)], "x-relay-key": "$KEY" },
        "proxy-authorization": format!("basic {}==", fill(20)),
        "authorization": "required for every endpoint",
        "AWS_SECRET_ACCESS_KEY": fill(40),
        "aws_secret_commit": "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "note": fill(40),
    });
    assert_eq!(scan_json(&document).len(), 4);
    redact_json(&mut document);
    assert_eq!(document["headers"]["Authorization"], "Bearer [redacted:bearer-header]");
    assert_eq!(document["headers"]["X-API-Key"][0], "[redacted:bearer-header]");
    assert_eq!(document["AWS_SECRET_ACCESS_KEY"], "[redacted:aws-secret-key]");
    assert_eq!(document["note"], fill(40));
    assert_eq!(scan_json(&document), []);
}

#[test]
fn private_keys_in_separate_lines_are_redacted() {
    let body = fill(64);
    let lines = |mark: &str| {
        let begin = ["-----BEGIN RSA PRIV", "ATE KEY-----"].concat();
        let end = begin.replace("BEGIN", "END");
        json!([
            format!("{mark}{begin}"),
            format!("{mark}{body}"),
            format!("{mark}{}", fill(9)),
            format!("{mark}{end}"),
            "after"
        ])
    };
    for mark in ["", "+", "-", " "] {
        let mut cut = lines(mark);
        cut.as_array_mut().unwrap().truncate(3);
        let mut document =
            json!({ "patch": [{ "oldStart": 1, "lines": lines(mark) }], "cut": cut, "kept": fill(64) });
        redact_json(&mut document);
        let text = document.to_string();
        assert_eq!(text.matches(&body).count(), 1, "{text}");
        assert_eq!(document["patch"][0]["lines"][3], "[redacted:private-key]");
        assert_eq!(document["patch"][0]["lines"][4], "after");
        assert!(document["cut"][2].as_str().unwrap().ends_with("[redacted:private-key]"), "{text}");
    }
    let blocks = lines("").as_array().unwrap().iter().map(|line| json!({ "text": line })).collect::<Vec<_>>();
    let mut document = json!({ "content": blocks });
    redact_json(&mut document);
    assert!(!document.to_string().contains(&body) && document["content"][4]["text"] == "after", "{document}");
}

#[test]
fn redacted_names_stay_distinct() {
    let (one, two) = (token(["gh", "p_"], 36), token(["gh", "o_"], 36));
    let mut document = json!({ one: 1, two: 2, "plain": 3 });
    redact_json(&mut document);
    let expected = json!({ "[redacted:github-token]": 2, "[redacted:github-token] (2)": 1, "plain": 3 });
    assert_eq!(document, expected);
    redact_json(&mut document);
    assert_eq!(document, expected);
}
