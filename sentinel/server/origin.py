"""Which Host and Origin a request may carry: against DNS rebinding and cross-site requests. Pure.

A browser can be made to send our cookie, or to take a foreign name for our address; it cannot be made to lie in these
two headers. Source: spec 01 section 3.
"""

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_WILDCARD = frozenset({"0.0.0.0", "::", ""})  # noqa: S104  # compared with, never bound to


@dataclass(frozen=True, slots=True)
class Hosts:
    """The names under which this server answers."""

    names: frozenset[str]
    any_address: bool
    """True when bound to every interface: then any IP literal is ours, and a literal cannot be rebound."""

    @classmethod
    def of(cls, bound: str, also: tuple[str, ...]) -> "Hosts":
        """Return the hosts of a server bound to `bound`, reachable by the names in `also` too."""
        names = _LOOPBACK | {one.lower() for one in also}
        return cls(names | {bound.lower()} - _WILDCARD, any_address=bound in _WILDCARD)

    def allows(self, host: str | None) -> bool:
        """Return whether a `Host` header names this server."""
        name = _hostname(host)
        return name is not None and (name in self.names or (self.any_address and _is_address(name)))


def same_origin(origin: str | None, host: str | None) -> bool:
    """Return whether an `Origin` header is that of the page which this `Host` serves."""
    if origin is None or host is None:
        return False
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and parts.netloc.lower() == host.lower()


def _hostname(host: str | None) -> str | None:
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port  # raises when it is none
    except ValueError:
        return None
    if host is None or parts.netloc != host or "@" in host:
        return None
    return parts.hostname


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
