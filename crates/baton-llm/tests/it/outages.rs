//! Which errors pause the queue, and which fail an item: one test for each row of the error table.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use baton_llm::{Anthropic, Compressor, OpenAi};
use baton_testkit::model_server::{Behaviour, ModelServer, UNREACHABLE_URL};

use crate::fixture::{anthropic_config, bash, openai_config, outage, unusable, with_both, with_both_within};

#[test]
fn no_connection_is_an_outage() {
    let url = UNREACHABLE_URL;
    let compressors: [Box<dyn Compressor>; 2] = [
        Box::new(Anthropic::new(&anthropic_config(url)).unwrap()),
        Box::new(OpenAi::new(&openai_config(url)).unwrap()),
    ];
    for compressor in compressors {
        let outage = outage(&*compressor);
        assert!(!outage.needs_attention && outage.retry_after.is_none(), "{}", outage.message);
        assert!(!outage.may_be_caused_by_item, "{}", outage.message);
        assert!(outage.message.starts_with(&format!("{} endpoint 127.0.0.1:", compressor.name())));
    }
}

#[test]
fn hanging_server_is_an_outage_after_the_timeout() {
    with_both_within(Duration::from_millis(200), |server, compressor| {
        server.behave(Behaviour::Hang);
        let start = Instant::now();
        let outage = outage(compressor);
        assert!(outage.message.contains("no answer in time"), "{}", outage.message);
        assert!(start.elapsed() >= Duration::from_millis(200));
        // On a busy machine the timeout may expire before the request is sent.
        assert!(server.received() <= 1, "the request was retried");
    });
}

#[test]
fn slow_answer_within_the_timeout_succeeds() {
    with_both(|server, compressor| {
        server.behave(Behaviour::Slow(Duration::from_millis(50)));
        assert_eq!(compressor.compress(&bash("item-3")).unwrap().observation.title, "Compressed item-3");
    });
}

#[test]
fn closed_connection_is_an_outage_and_the_next_call_reconnects() {
    with_both(|server, compressor| {
        server.script([Behaviour::CloseConnection]);
        assert!(!outage(compressor).needs_attention);
        compressor.compress(&bash("item-1")).unwrap();
        assert_eq!(server.connections(), 2);
    });
}

#[test]
fn non_http_answer_is_an_outage() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 65_536]);
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.9\r\n\r\n");
    });
    let outage = outage(&Anthropic::new(&anthropic_config(&url)).unwrap());
    assert!(!outage.message.contains("OpenSSH"), "{}", outage.message);
    server.join().unwrap();
}

#[test]
fn tls_to_a_server_without_it_is_an_outage() {
    let server = ModelServer::start();
    let url = server.url().replace("http://", "https://");
    assert!(!outage(&Anthropic::new(&anthropic_config(&url)).unwrap()).needs_attention);
    assert_eq!(server.received(), 0);
}

#[test]
fn rate_limit_is_an_outage_with_a_retry_delay() {
    let date = Behaviour::RateLimited { retry_after: Some("Sun, 06 Nov 1994 08:50:07 GMT".to_owned()) };
    for (behaviour, expected) in [
        (Behaviour::rate_limited(17), Some(17)),
        (date, Some(30)),
        (Behaviour::RateLimited { retry_after: None }, None),
        (Behaviour::RateLimited { retry_after: Some("soon".to_owned()) }, None),
        (Behaviour::rate_limited(1_000_000), Some(3_600)),
    ] {
        with_both(|server, compressor| {
            server.behave(behaviour.clone());
            let outage = outage(compressor);
            assert_eq!(outage.retry_after, expected.map(Duration::from_secs), "{behaviour:?}");
            assert!(!outage.needs_attention);
            assert!(outage.message.contains("answered 429 (rate_limit_error)"), "{}", outage.message);
            assert_eq!(server.received(), 1);
        });
    }
}

#[test]
fn server_error_is_an_outage() {
    let statuses = [408, 500, 502, 503, 504, 520, 529].map(Behaviour::Status);
    for behaviour in statuses.into_iter().chain([Behaviour::ServerError, Behaviour::Overloaded]) {
        with_both(|server, compressor| {
            server.behave(behaviour.clone());
            assert!(!outage(compressor).needs_attention, "{behaviour:?}");
            assert_eq!(server.received(), 1);
        });
    }
}

#[test]
fn error_status_inside_a_200_answer_is_an_outage() {
    let server = ModelServer::start();
    server.behave(Behaviour::Body(r#"{"error":{"code":502,"message":"upstream"}}"#.to_owned()));
    let compressor = OpenAi::new(&openai_config(&server.url())).unwrap();
    assert!(outage(&compressor).message.contains("answered 502"));
}

#[test]
fn rejected_key_or_wrong_address_is_an_outage_that_needs_attention() {
    for behaviour in [
        Behaviour::Unauthorized,
        Behaviour::Forbidden,
        Behaviour::Status(402),
        Behaviour::Status(404),
        Behaviour::OutOfCredit,
    ] {
        with_both(|server, compressor| {
            server.behave(behaviour.clone());
            assert!(outage(compressor).needs_attention, "{behaviour:?}");
            assert_eq!(server.received(), 1, "{behaviour:?}");
        });
    }
    let server = ModelServer::start();
    let elsewhere = OpenAi::new(&openai_config(&format!("{}/elsewhere", server.url()))).unwrap();
    assert!(outage(&elsewhere).needs_attention);
}

#[test]
fn redirects_are_not_followed() {
    with_both(|server, compressor| {
        let other = ModelServer::start();
        server.behave(Behaviour::Redirect(format!("{}/v1/messages", other.url())));
        let outage = outage(compressor);
        assert!(outage.needs_attention && outage.message.contains("redirects are not followed"));
        assert_eq!((server.received(), other.received()), (1, 0));
    });
}

#[test]
fn other_client_errors_make_the_item_unusable() {
    for status in [405, 409, 410, 413, 415, 418, 431] {
        with_both(|server, compressor| {
            server.behave(Behaviour::Status(status));
            let (message, _) = unusable(compressor);
            assert!(message.contains(&format!("answered {status} (fake_error): as asked")), "{message}");
            assert_eq!(server.received(), 1);
        });
    }
    with_both(|server, compressor| {
        server.behave(Behaviour::BadRequest);
        let (message, _) = unusable(compressor);
        let expected = "answered 400 (invalid_request_error): prompt is too long";
        assert!(message.ends_with(expected), "{message}");
    });
}

#[test]
fn only_some_outages_may_be_caused_by_the_item() {
    let innocent = [401, 403, 404, 429, 529].map(Behaviour::Status);
    for behaviour in innocent.into_iter().chain([Behaviour::rate_limited(1)]) {
        with_both(|server, compressor| {
            server.behave(behaviour.clone());
            assert!(!outage(compressor).may_be_caused_by_item, "{behaviour:?}");
        });
    }
    let suspicious = [408, 500, 502, 503, 504].map(Behaviour::Status);
    for behaviour in suspicious.into_iter().chain([Behaviour::CloseConnection, Behaviour::Hang]) {
        with_both_within(Duration::from_millis(200), |server, compressor| {
            server.behave(behaviour.clone());
            assert!(outage(compressor).may_be_caused_by_item, "{behaviour:?}");
        });
    }
}

#[test]
fn calls_succeed_after_an_outage() {
    with_both(|server, compressor| {
        server.script([Behaviour::ServerError, Behaviour::Overloaded]);
        outage(compressor);
        outage(compressor);
        assert_eq!(compressor.compress(&bash("item-5")).unwrap().observation.title, "Compressed item-5");
        assert_eq!(server.connections(), 1, "connections are kept");
    });
}

#[test]
fn many_threads_can_compress_concurrently() {
    with_both(|server, compressor| {
        std::thread::scope(|scope| {
            for thread in 0..8 {
                scope.spawn(move || {
                    for call in 0..20 {
                        let item = format!("item-{}", thread * 100 + call);
                        let compression = compressor.compress(&bash(&item)).unwrap();
                        assert_eq!(compression.observation.title, format!("Compressed {item}"));
                    }
                });
            }
        });
        assert_eq!(server.received(), 160);
        assert!(server.connections() <= 16, "{} connections", server.connections());
    });
}
