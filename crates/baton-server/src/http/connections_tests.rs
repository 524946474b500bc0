use super::*;

const LIMIT: usize = MIN_CONNECTIONS;

fn connections() -> Arc<Connections> {
    Arc::new(Connections::new(LIMIT, Arc::new(Metrics::default())))
}

fn peer(last: u8) -> Peer {
    Peer::of([192, 0, 2, last].into())
}

fn is_closing(connection: &Connection) -> bool {
    connection.connections.registry().open[&connection.id].state == State::Closing
}

#[test]
fn full_server_closes_the_connection_that_was_idle_longest() {
    let connections = connections();
    let open: Vec<_> = (0..LIMIT).map(|_| connections.open(peer(1))).collect();
    assert!(open.iter().all(|connection| !is_closing(connection)));
    // The oldest connection has just sent a request.
    open[0].received_head();
    let newcomer = connections.open(peer(1));
    assert!(is_closing(&open[1]) && !is_closing(&open[0]) && !is_closing(&newcomer));
    drop(open);
    assert_eq!(connections.registry().open.len(), 1);
}

#[test]
fn peer_with_the_most_connections_loses_one() {
    let connections = connections();
    let quiet = connections.open(peer(1));
    let greedy: Vec<_> = (1..LIMIT).map(|_| connections.open(peer(2))).collect();
    let _newcomer = connections.open(peer(3));
    assert!(!is_closing(&quiet) && is_closing(&greedy[0]));
}

#[test]
fn busy_connections_are_kept_and_leave_room_for_others() {
    let connections = connections();
    let open: Vec<_> = (0..LIMIT).map(|_| connections.open(peer(1))).collect();
    let busy: Vec<_> = open.iter().map_while(|connection| connection.start_request().ok()).collect();
    assert_eq!(busy.len(), LIMIT - RESERVED_CONNECTIONS);
    for _ in 0..2 * LIMIT {
        let newcomer = connections.open(peer(2));
        assert!(!is_closing(&newcomer));
        let refused = newcomer.start_request().err().unwrap();
        assert_eq!(refused.code, ErrorCode::Overloaded);
    }
    assert!(busy.iter().all(|busy| !is_closing(&busy.connection)));
    drop(busy);
    assert!(connections.open(peer(2)).start_request().is_ok());
}

#[test]
fn closing_everything_counts_requests_in_progress() {
    let connections = connections();
    let open: Vec<_> = (0..3).map(|_| connections.open(peer(1))).collect();
    let _busy = open[0].start_request().unwrap();
    connections.close_idle(Duration::ZERO);
    assert!(!is_closing(&open[0]) && is_closing(&open[1]) && is_closing(&open[2]));
    assert_eq!(connections.close_all(), 1);
    assert!(is_closing(&open[0]));
}
