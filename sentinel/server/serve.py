"""Run the embedded server: for `sentinel hoop serve`, and inside another program (`sentinel demo`, tests).

One server a data directory: it holds a lock on it, because fan-out and presence live in its memory.
"""

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from filelock import FileLock, Timeout

from sentinel.core.errors import AlreadyRunning, ConfigError
from sentinel.rooms.hoop_wire import FRAME_LIMIT_BYTES
from sentinel.server.app import application
from sentinel.server.clock import Now, system_now_ms
from sentinel.server.config import ServerConfig
from sentinel.server.origin import Hosts
from sentinel.server.store import make_folder

LOCK = "serve.lock"
_BACKLOG = 2048
_GRACE_S = 5


@dataclass(frozen=True, slots=True)
class Served:
    """A running server: where it answers, and the task that ends when it does."""

    url: str
    port: int
    ended: asyncio.Task[None]


class _Server(uvicorn.Server):
    """A server whose signals belong to the program around it, and which says when it takes connections."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave the signals alone."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say so."""
        await super().startup(sockets)
        self.is_up.set()


@contextlib.asynccontextmanager
async def serving(
    data: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    config: ServerConfig | None = None,
    now_ms: Now = system_now_ms,
) -> AsyncGenerator[Served]:
    """Serve `data` (made if absent) until the block is left; the block begins when connections are taken.

    Raises:
        ConfigError: the address cannot be bound, or the data directory cannot be used.
        AlreadyRunning: another server holds this data directory.
    """
    config = config or ServerConfig()
    make_folder(data)
    with _only_server_of(data), _listening(host, port) as listener:
        hosts = Hosts.of(host, config.allowed_hosts)
        async with application(data, config, hosts, now_ms=now_ms) as app:
            server = _Server(
                uvicorn.Config(
                    app,
                    lifespan="off",
                    log_config=None,
                    access_log=False,
                    proxy_headers=False,
                    server_header=False,
                    http="h11",  # it caps the size of a request's head; httptools does not
                    ws="websockets-sansio",
                    ws_max_size=FRAME_LIMIT_BYTES,
                    ws_ping_interval=config.ping_interval_s,
                    ws_ping_timeout=config.ping_interval_s,
                    ws_per_message_deflate=False,
                    timeout_graceful_shutdown=_GRACE_S,
                    log_level=logging.WARNING,
                )
            )
            running = asyncio.create_task(server.serve([listener]))
            await server.is_up.wait()
            bound: int = listener.getsockname()[1]
            shown = f"[{host}]" if ":" in host else host
            try:
                yield Served(f"http://{shown}:{bound}", bound, running)
            finally:
                server.should_exit = True
                await running


@contextlib.contextmanager
def _only_server_of(data: Path) -> Generator[None]:
    lock = FileLock(data / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout as fault:
        raise AlreadyRunning(
            f"another server serves {data}", mend="stop it, or choose another --data"
        ) from fault
    except OSError as fault:
        raise ConfigError(
            f"{lock.lock_file} cannot be written: {fault.strerror}", mend="check the owner of its directory"
        ) from fault
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def _listening(host: str, port: int) -> Generator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio sets TCP_NODELAY only then; without it a reply waits 40 ms for an ACK.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as fault:
        listener.close()
        raise ConfigError(
            f"{host}:{port} cannot be listened on: {fault.strerror}",
            mend="stop what listens there, or choose another --port"
            if fault.errno == errno.EADDRINUSE
            else "choose another --host or --port",
        ) from fault
    with listener:
        yield listener
