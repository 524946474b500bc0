//! Texts that contain an assigned secret, and texts that do not. Every fake secret is built at run time.

use proptest::prelude::*;

use super::*;

const MARK: &str = "[redacted:assigned-secret]";

/// Checks that the secret is redacted in a text that has `@` in its place, and that a second redaction changes nothing.
fn check(pattern: &str, secret: &str) {
    let text = pattern.replace('@', secret);
    let expected = pattern.replace('@', MARK);
    assert_eq!(redact_assigned(&text), expected, "{pattern}");
    assert_eq!(redact_assigned(&expected), expected, "the second redaction changed {pattern}");
}

#[test]
fn values_of_secret_names_are_redacted() {
    let secret = ["hun", "ter2", "Xy9"].concat();
    for pattern in [
        "DB_PASSWORD=@",
        "export API_KEY=@\nNEXT=1",
        "DB_PASSWORD=\"@\"",
        "AUTH_TOKEN='@' make",
        "SECRET_KEY_BASE=@",
        "DB_PASS=@",
        "  password: @\n",
        "spring.datasource.password: @\r\n",
        "db:\n  password: \"@\"\n",
        "{\"password\": \"@\", \"user\": \"bob\"}",
        "{\\\"apiKey\\\": \\\"@\\\"}",
        "const API_KEY = '@';",
        "let client_secret = \"@\";",
        "token := \"@\"",
        "'password' => '@',",
        "https://example.com/?access_token=@&x=1",
        "mysql --password=@ -h db",
        "deploy --api-key @ --dry-run",
        "deploy \\\n--api-key @",
        "deploy \\\n\t--api-key @",
        "sh -c '--api-key @'",
        "['--api-key', '--token @']",
        "curl -u admin:@ https://example.com",
        "curl -s --user \"admin:@\" https://example.com",
        "+DB_PASSWORD=@",
        "12\tDB_PASSWORD=@",
        "var apiKey string = \"@\"",
        "const token: string = '@';",
        "static API_TOKEN: &str = \"@\";",
        "private static final String PASSWORD = \"@\";",
        "char *db_password = \"@\";",
        "System.setProperty(\"db.password\", \"@\");",
        "os.Setenv(\"API_KEY\",\"@\")",
        "config.put('client_secret', '@')",
        "API_TOKEN ?= @\n",
        "token ||= \"@\"",
        "<password>@</password>",
        "<db:apiKey> @ </db:apiKey>",
        "<add key=\"ApiKey\" value=\"@\" />",
        "<property name=\"hibernate.connection.password\" value='@'/>",
    ] {
        check(pattern, &secret);
    }
    check("PASSWORD=@", "correct-horse");
    check("PASSWORD=@", "Xk3.9dKs");
    for word in ["True", "None", "null", "secret", "password", "undefined"] {
        check("DB_PASSWORD=@", &[word, "Horse42!"].concat());
    }
    check("curl -u a:@ http://x", "b");
}

#[test]
fn source_code_and_placeholders_are_not_redacted() {
    for text in [
        "fn login(user: &str, password: &str) -> Result<Token2, Error> {",
        "    pub token: Option<Token2>,",
        "let token = parse_token2(input)?;",
        "let token = self.tokens.next2();",
        "password: String,\n    secret: Vec<u8>,",
        "token: Token::Identifier2,",
        "const secret = process.env.SECRET_KEY1;",
        "api_key = os.environ[\"API_KEY1\"]",
        "API_KEY=$API_KEY_2024",
        "API_KEY=${API_KEY2024}",
        "PASSWORD=$(pass show db2)",
        "PASSWORD=",
        "PASSWORD=\"\"",
        "PASSWORD=changeme123",
        "PASSWORD=password",
        "SECRET=undefined",
        "API_KEY=Secret",
        "PASSWORD=password1",
        "{\"api_key\": \"secret123\"}",
        "TOKEN=replace-me",
        "TOKEN=replace_with_your_token_1",
        "TOKEN=insert-token-here-1",
        "TOKEN=<your-token-123>",
        "TOKEN=your-token-here-123",
        "SECRET=xxxxxxxxxxxx",
        "API_KEY=***********",
        "TOKEN=[redacted:github-token]",
        "${TOKEN:-default1234}",
        "if token == \"abc12345\" {",
        "t.Run(\"invalid token\", \"abc12345\")",
        "assert_eq!(\"token\", \"token1234\")?",
        "log.Printf(\"token\", count2)",
        "map.get(\"password\", default1)",
        "<password>changeme123</password>",
        "<token>${env.TOKEN2}</token>",
        "<token>12345</token>",
        "<input name=\"username\" value=\"abc12345\">",
        "var tokenCount string = \"abc12345\"",
        "if (a < password && b > token2) {",
        "API_KEY ?= $(shell cat key2)\n",
        "password?.length == 12345678",
        "if password != 'abc12345'",
        "max_tokens: 1024\nmax_tokens=16384",
        "\"tokens\": 123456, \"token_count\": \"12345678a\"",
        "password_hash = \"$2b$12$abcdefgh\"",
        "PASSWORD_FILE=/run/secrets/db1",
        "\"password\": \"Enter your password 2 times\"",
        "password: \"Passwort\"",
        "\"token\": \"identifier\"",
        "type Token = string;",
        "token_type: bearer\ntoken: identifier",
        "let secret: [u8; 32] = [0; 32];",
        "the token: a word, and password: another",
        "use --token to pass it, --password prompts",
        "assert_eq!(token, 12345678);",
        "git commit -u origin:main2024",
        "docker run -u 1000:1000 image",
        "key = \"abc12345678\"",
        "primary_key: user_id_12345",
        "keyboard: qwerty123",
        "compass=north12345",
        "TrafficSecret => \"CLIENT_TRAFFIC_SECRET_0\",",
        "token: \"TOKEN_KIND_2\",",
        "PWD=/home/dev/shop2",
        "OLDPWD=/home/dev/shop2",
        "PASS=12345678a",
    ] {
        assert_eq!(redact_assigned(text), text);
    }
}

#[test]
fn entries_are_judged_by_their_names() {
    let secret = ["hun", "ter2", "Xy9"].concat();
    for name in ["password", "apiKey", "client_secret", "X-Auth-Token", "DB_PASSWORD"] {
        assert!(is_assigned(name, &secret), "{name}");
    }
    for (name, text) in [
        ("path", secret.as_str()),
        ("password", "Enter it"),
        ("token", "identifier"),
        ("token", "$TOKEN_2024"),
        ("secret", "config.secret1"),
        ("password", ""),
        ("new_string", secret.as_str()),
    ] {
        assert!(!is_assigned(name, text), "{name}: {text}");
    }
}

proptest! {
    #[test]
    fn redaction_never_fails_and_is_idempotent(text in "([A-Za-z_]{0,8}(PASSWORD|token|apiKey|--secret)[ =:\"'\\\\]{0,3}[!-~é\n]{0,20}){0,4}") {
        let once = redact_assigned(&text).into_owned();
        prop_assert_eq!(redact_assigned(&once), once.as_str());
    }
}

/// A scan that inspects the line again for each of its bytes would take minutes here.
#[test]
fn long_lines_are_scanned_once() {
    let records: String =
        (0..40_000).map(|id| format!("{{\"id\":{id},\"key\":{id}.5,\"ok\":true}},")).collect();
    for line in [records, "token=".repeat(200_000), "a token: ".repeat(150_000), "curl -u ".repeat(150_000)] {
        assert!(redact_assigned(&line) == line);
    }
}
