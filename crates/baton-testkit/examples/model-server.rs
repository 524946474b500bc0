//! Runs the fake model, to try a worker without a key. Prints its address and answers until it is killed.
//!
//! `cargo run -p baton-testkit --example model-server -- slow`
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "interactive output")]

use std::process::ExitCode;
use std::time::Duration;

use baton_testkit::model_server::{Behaviour, ModelServer};

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_else(|| "good".to_owned());
    let Some(behaviour) = behaviour(&name) else {
        eprintln!("no such behaviour: {name}; see the source of this example");
        return ExitCode::from(2);
    };
    let server = ModelServer::start();
    server.behave(behaviour);
    println!("Anthropic Messages API: {}", server.url());
    println!("chat completions:       {}/v1", server.url());
    loop {
        std::thread::sleep(Duration::from_secs(10));
        println!("{} requests on {} connections so far", server.received(), server.connections());
    }
}

fn behaviour(name: &str) -> Option<Behaviour> {
    Some(match name {
        "good" => Behaviour::Good,
        "slow" => Behaviour::Slow(Duration::from_secs(2)),
        "fenced" => Behaviour::Fenced,
        "rate-limited" => Behaviour::rate_limited(30),
        "unauthorized" => Behaviour::Unauthorized,
        "forbidden" => Behaviour::Forbidden,
        "server-error" => Behaviour::ServerError,
        "overloaded" => Behaviour::Overloaded,
        "bad-request" => Behaviour::BadRequest,
        "garbage" => Behaviour::Garbage,
        "missing-title" => Behaviour::MissingTitle,
        "wrong-types" => Behaviour::WrongTypes,
        "truncated" => Behaviour::TruncatedJson,
        "max-tokens" => Behaviour::MaxTokens,
        "hang" => Behaviour::Hang,
        "close" => Behaviour::CloseConnection,
        "refuse-structured" => Behaviour::RefuseStructuredOutput,
        _ => return None,
    })
}
