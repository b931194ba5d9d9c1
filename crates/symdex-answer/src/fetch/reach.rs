//! The addresses that a source of debug files may lead to.
//!
//! A source can redirect requests, and whoever answers for a name in DNS chooses its addresses. Neither may reach
//! services of this machine or of its network that the source could not reach itself, nor the services that tell
//! machines in a cloud their credentials.
//!
//! The standard library tells these ranges apart in functions that are not stable yet (`is_global`).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::sync::{Arc, OnceLock};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::Host;

/// The variables that make the client use a proxy.
const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// From where an address can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Public,
    Private,
    LinkLocal,
    Loopback,
    /// In a range for special purposes, such as translation, tests and documentation.
    Special,
    /// Of a service that tells the machines of a cloud their credentials. Nothing leads there.
    Metadata,
}

/// The addresses of such services: of AWS (also for containers), Google, Alibaba and Azure.
const METADATA_V4: [Ipv4Addr; 5] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(169, 254, 170, 23),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
];
const METADATA_V6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

impl Reach {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => Self::of_v4(v4),
            IpAddr::V6(v6) => Self::of_v6(v6),
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        match address.octets() {
            _ if METADATA_V4.contains(&address) => Self::Metadata,
            _ if address.is_loopback() || address.is_unspecified() => Self::Loopback,
            _ if address.is_link_local() => Self::LinkLocal,
            // 100.64.0.0/10 is shared by the customers of a provider, which may have services there.
            [100, 64..=127, ..] => Self::Private,
            _ if address.is_private() => Self::Private,
            _ if address.is_documentation() || address.is_multicast() => Self::Special,
            // "This network", protocols, the relays of 6to4, benchmarks, and what is reserved (RFC 6890).
            [0, ..] | [192, 0, 0, _] | [192, 88, 99, _] | [198, 18..=19, ..] | [240..=255, ..] => {
                Self::Special
            }
            _ => Self::Public,
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        match address.segments() {
            _ if METADATA_V6.contains(&address) => Self::Metadata,
            _ if address.is_loopback() || address.is_unspecified() => Self::Loopback,
            _ if address.is_unicast_link_local() => Self::LinkLocal,
            _ if address.is_unique_local() => Self::Private,
            // The IPv4 address that a gateway translates it to (RFC 6052).
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                Self::of_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
            }
            // Protocols (Teredo among them), 6to4, and two ranges for documentation.
            [0x2001, 0..=0x1ff, ..] | [0x2002, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => {
                Self::Special
            }
            // All public addresses are there.
            [0x2000..=0x3fff, ..] => Self::Public,
            _ => Self::Special,
        }
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "a public address",
            Self::Private => "a private address",
            Self::LinkLocal => "a link-local address",
            Self::Loopback => "a loopback address",
            Self::Special => "an address for special purposes",
            Self::Metadata => "the address of a metadata service",
        })
    }
}

/// Allows public addresses, and addresses in the source's own network.
#[derive(Debug)]
pub(super) struct Reachable {
    /// The host name or address of the source.
    source: String,
    /// Known as soon as the name of the source is resolved. It stays: the owner of the name could change it.
    own: OnceLock<Reach>,
    /// Whether names are resolved here, and not by a proxy.
    checks_names: bool,
}

impl Reachable {
    /// What the source at `url` may lead to.
    pub(super) fn of(url: &Url) -> Self {
        let source = url.host_str().unwrap_or_default().to_owned();
        let own = address_of(url).map(|address| OnceLock::from(Reach::of(address))).unwrap_or_default();
        Self { source, own, checks_names: !PROXIES.iter().any(|name| std::env::var_os(name).is_some()) }
    }

    /// Checks the target of a redirect. A name is checked when it is resolved.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(super) fn check(&self, url: &Url) -> Result<(), String> {
        match address_of(url) {
            Some(address) if !self.admits(address) => Err(refusal("a redirect leads to", address)),
            _ => Ok(()),
        }
    }

    fn admits(&self, address: IpAddr) -> bool {
        let reach = Reach::of(address);
        reach == Reach::Public || reach != Reach::Metadata && self.own.get() == Some(&reach)
    }

    /// Those of `addresses` that `name` may have.
    fn admitted(&self, name: &str, mut addresses: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, String> {
        let Some(first) = addresses.first().map(SocketAddr::ip) else { return Ok(addresses) };
        if name == self.source {
            self.own.get_or_init(|| Reach::of(first));
        }
        if self.checks_names {
            addresses.retain(|address| self.admits(address.ip()));
        }
        if addresses.is_empty() { Err(refusal(&format!("{name} is"), first)) } else { Ok(addresses) }
    }
}

fn refusal(what: &str, address: IpAddr) -> String {
    format!("{what} {address}, {}, and the source is not at one", Reach::of(address))
}

fn address_of(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
        Host::Domain(_) => None,
    }
}

/// Resolves names as the system does, to addresses that are [`Reachable`].
pub(super) struct Resolver(pub(super) Arc<Reachable>);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let reachable = Arc::clone(&self.0);
        Box::pin(async move {
            let name = name.as_str().to_owned();
            let resolve = move || -> Result<Addrs, Box<dyn std::error::Error + Send + Sync>> {
                let addresses = (&*name, 0).to_socket_addrs()?.collect();
                Ok(Box::new(reachable.admitted(&name, addresses)?.into_iter()))
            };
            tokio::task::spawn_blocking(resolve).await?
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reachable(source: &str) -> Reachable {
        Reachable { checks_names: true, ..Reachable::of(&source.parse().expect("a URL")) }
    }

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| SocketAddr::new(text.parse().expect("an address"), 0)).collect()
    }

    #[test]
    fn addresses_that_only_this_machine_or_its_network_reaches_are_told_apart() {
        for (text, reach) in [
            ("93.184.215.14", Reach::Public),
            ("2606:2800:21f:cb07::1", Reach::Public),
            ("192.88.98.1", Reach::Public),
            ("198.20.0.1", Reach::Public),
            ("127.1.2.3", Reach::Loopback),
            ("0.0.0.0", Reach::Loopback),
            ("::1", Reach::Loopback),
            ("::", Reach::Loopback),
            ("::ffff:127.0.0.1", Reach::Loopback),
            ("64:ff9b::7f00:1", Reach::Loopback),
            ("10.0.0.1", Reach::Private),
            ("172.31.0.1", Reach::Private),
            ("192.168.1.1", Reach::Private),
            ("100.100.100.201", Reach::Private),
            ("fd00::1", Reach::Private),
            ("64:ff9b::a00:1", Reach::Private),
            ("169.254.1.1", Reach::LinkLocal),
            ("169.254.169.254", Reach::Metadata),
            ("::ffff:169.254.169.254", Reach::Metadata),
            ("64:ff9b::a9fe:a9fe", Reach::Metadata),
            ("100.100.100.200", Reach::Metadata),
            ("168.63.129.16", Reach::Metadata),
            ("fd00:ec2::254", Reach::Metadata),
            ("64:ff9b:1::a00:1", Reach::Special),
            ("2002:a00:1::1", Reach::Special),
            ("2001:0:1::1", Reach::Special),
            ("2001:db8::1", Reach::Special),
            ("ff02::1", Reach::Special),
            ("::10.0.0.1", Reach::Special),
            ("0.1.2.3", Reach::Special),
            ("192.0.0.192", Reach::Special),
            ("192.0.2.1", Reach::Special),
            ("198.19.255.255", Reach::Special),
            ("224.0.0.1", Reach::Special),
            ("240.0.0.1", Reach::Special),
            ("255.255.255.255", Reach::Special),
            ("fe80::1", Reach::LinkLocal),
        ] {
            assert_eq!(Reach::of(text.parse().expect("an address")), reach, "{text}");
        }
    }

    #[test]
    fn a_redirect_to_an_address_leads_to_public_ones_and_to_those_like_the_source() {
        let is_refused = |source: &str, target: &str| {
            let refused = reachable(source).check(&target.parse().expect("a URL"));
            refused.inspect_err(|why| assert!(why.contains("a redirect leads to"), "{why}")).is_err()
        };
        // The URL names addresses in several ways.
        for target in ["http://127.0.0.1:6379/", "http://2130706433/", "http://0x7f.1/", "http://[::1]/x"] {
            assert!(is_refused("https://93.184.215.14/", target), "{target}");
            assert!(is_refused("https://symbols.example/", target), "{target}");
            assert!(is_refused("https://10.0.0.1/", target), "{target}");
            assert!(!is_refused("http://127.0.0.1:8002/", target), "{target}");
        }
        assert!(is_refused("http://127.0.0.1/", "http://169.254.169.254/latest/meta-data"));
        for (source, target) in [
            ("http://169.254.1.1/", "http://169.254.169.254/latest/meta-data"),
            ("http://10.0.0.1/", "http://[fd00:ec2::254]/latest/meta-data"),
            ("http://10.0.0.1/", "http://100.100.100.200/latest/meta-data"),
            ("http://93.184.215.14/", "http://198.18.0.1/"),
        ] {
            assert!(is_refused(source, target), "{source} {target}");
        }
        assert!(!is_refused("http://10.0.0.1/", "http://192.168.0.1/"));
        assert!(!is_refused("http://10.0.0.1/", "http://93.184.215.14/"));
    }

    #[test]
    fn names_have_public_addresses_and_those_like_the_source() {
        let source = reachable("https://symbols.example/");
        let public = addresses(&["93.184.215.14"]);
        assert_eq!(source.admitted("symbols.example", public.clone()), Ok(public.clone()));
        let why = source.admitted("cdn.example", addresses(&["127.0.0.1"])).expect_err("refused");
        assert_eq!(why, "cdn.example is 127.0.0.1, a loopback address, and the source is not at one");
        let mixed = addresses(&["10.0.0.1", "93.184.215.14"]);
        assert_eq!(source.admitted("cdn.example", mixed), Ok(public.clone()));
        // The name of the source leads elsewhere later.
        assert!(source.admitted("symbols.example", addresses(&["127.0.0.1"])).is_err());
        assert_eq!(source.admitted("empty.example", Vec::new()), Ok(Vec::new()));

        let inside = reachable("https://symbols.corp/");
        let private = addresses(&["10.0.0.1"]);
        assert!(inside.admitted("files.corp", private.clone()).is_err(), "the source is not known yet");
        assert_eq!(inside.admitted("symbols.corp", private.clone()), Ok(private.clone()));
        assert_eq!(inside.admitted("files.corp", private.clone()), Ok(private.clone()));
        assert!(inside.admitted("localhost", addresses(&["127.0.0.1", "::1"])).is_err());

        let proxied = Reachable { checks_names: false, ..reachable("https://symbols.example/") };
        assert_eq!(proxied.admitted("proxy.corp", private.clone()), Ok(private), "the name of the proxy");
    }
}
