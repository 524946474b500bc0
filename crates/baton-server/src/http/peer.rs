//! The client address that limits are counted for.

use std::net::{IpAddr, Ipv6Addr};

/// Size of the network prefix that one client usually controls.
const IPV6_NETWORK_BITS: u32 = 64;

/// A client address that limits are counted for: an IPv4 address or an IPv6 /64 network. `None` on a Unix socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Peer(pub(super) Option<IpAddr>);

impl Peer {
    pub(super) const LOCAL: Self = Self(None);

    /// Groups addresses that one client can choose freely.
    pub(super) fn of(address: IpAddr) -> Self {
        let network = match address.to_canonical() {
            IpAddr::V4(address) => IpAddr::V4(address),
            IpAddr::V6(address) => {
                let mask = u128::MAX << (Ipv6Addr::BITS - IPV6_NETWORK_BITS);
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
            }
        };
        Self(Some(network))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Peer {
        Peer::of(address.parse().unwrap())
    }

    #[test]
    fn ipv6_addresses_of_one_network_are_one_peer() {
        assert_eq!(peer("2001:db8:1:2::1"), peer("2001:db8:1:2:ffff::9"));
        assert_ne!(peer("2001:db8:1:2::1"), peer("2001:db8:1:3::1"));
        assert_ne!(peer("192.0.2.1"), peer("192.0.2.2"));
        assert_eq!(peer("192.0.2.1"), peer("::ffff:192.0.2.1"));
    }
}
