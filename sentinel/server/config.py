"""The numbers of the embedded server that an operator may change; a field's unit is in its name."""

from dataclasses import dataclass

from sentinel.rooms.hoop_wire import MEDIA_LIMIT_BYTES


@dataclass(frozen=True, slots=True)
class Smtp:
    """Where log-in codes are mailed. An account's name is its address when it holds an `@`."""

    host: str
    port: int
    sender: str
    domain: str = ""
    """Appended to names without an `@` ("" means: those get their code on the console)."""


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Limits and waits (spec 01 sections 2 and 3)."""

    reads_per_s: float = 50.0
    posts_per_s: float = 20.0
    burst: float = 100.0
    address_per_s: float = 2_000.0
    """One address may carry many accounts (a machine full of personas), so its limit is that of forty of them."""
    address_burst: float = 4_000.0
    offline_after_s: float = 60.0
    auth_timeout_s: float = 5.0
    body_silence_s: float = 30.0
    ping_interval_s: float = 20.0
    access_look_s: float = 1.0
    """How often sockets are held against accounts, tokens and memberships that another process may have changed."""
    queue_frames: int = 1_000
    queue_bytes: int = 4 * 1024 * 1024
    media_limit_bytes: int = MEDIA_LIMIT_BYTES
    unposted_media_s: float = 24 * 60 * 60.0
    """How long an upload may wait for the message that carries it; an older one is removed."""
    media_sweep_s: float = 60 * 60.0
    session_days: int = 30
    allowed_hosts: tuple[str, ...] = ()
    """Names beside the loopback ones under which browsers may reach this server (DNS rebinding)."""
    smtp: Smtp | None = None
