"""Where a HOOP server is, checked once; and which addresses may be shown its token. Pure.

Source: spec 01 section 2; security facts, section F (redirects off: a token goes to one origin only).
"""

import urllib.parse
from dataclasses import dataclass

from sentinel.core.errors import ConfigError, Rejected

_MEND = "write http://host:port or https://host, nothing more"


@dataclass(frozen=True, slots=True)
class Address:
    """A base such as `https://rooms.example/hoop`, without a slash at its end."""

    base: str

    @classmethod
    def parse(cls, server: str) -> "Address":
        """Check the server's address; raises `ConfigError`, whose text never holds a password from it."""
        text = server.strip()
        try:
            parts = urllib.parse.urlsplit(text)
            port = parts.port
        except ValueError:
            raise ConfigError("the server's address is not a URL", mend=_MEND) from None
        if parts.scheme not in ("http", "https"):
            raise ConfigError("the server's address has no scheme that we know", mend=_MEND)
        if "@" in parts.netloc:
            raise ConfigError("the server's address holds a name or a password", mend=_MEND)
        if not parts.hostname or port == 0 or not text.isascii() or not text.isprintable() or " " in text:
            raise ConfigError("the server's address has no usable host", mend=_MEND)
        if parts.query or parts.fragment:
            raise ConfigError("the server's address holds a query or a fragment", mend=_MEND)
        return cls(f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}")

    @property
    def is_secure(self) -> bool:
        """Whether bytes to it are encrypted."""
        return self.base.startswith("https:")

    @property
    def live(self) -> str:
        """The address of the WebSocket."""
        return "ws" + self.base.removeprefix("http") + "/v1/ws"

    def url(self, *segments: str, query: str = "") -> str:
        """Return the address of a call; each segment is quoted, so that an id never changes which call it is."""
        path = "".join(f"/{_quoted(one)}" for one in segments)
        return f"{self.base}/v1{path}{query}"

    def own(self, url: str) -> str:
        """Return the full address of a `url` that the server named, relative to the base or absolute.

        Raises:
            Rejected: it lies on another origin, which must never see the token.
        """
        full = self.base + url if url.startswith("/") and not url.startswith("//") else url
        try:
            same = _origin(full) == _origin(self.base)
        except ValueError:
            same = False
        if not same or "\\" in url:
            raise Rejected(
                "the media lies on another server than the room",
                status=400,
                mend="fetch it by hand if you trust that server: it must not see this account's token",
            )
        return full


def _quoted(segment: str) -> str:
    if not segment.strip("."):  # "", "." and ".." would name another path
        raise Rejected(f"{segment!r} is no identifier", status=400)
    return urllib.parse.quote(segment, safe="")


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urllib.parse.urlsplit(url)
    usual = {"http": 80, "https": 443}
    return parts.scheme, parts.hostname, parts.port or usual.get(parts.scheme)
