"""Open a room by its server's address. Source: spec 01 sections 1, 2 and 4."""

import secrets
from collections.abc import Callable

from sentinel.core.errors import ConfigError
from sentinel.core.persona import Secret
from sentinel.core.ports import Room


def open_room(server: str, token: Secret, *, draw: Callable[[], float] | None = None) -> Room:
    """Return the room of `server` as the account of `token` sees it. Nothing is sent yet.

    Args:
        server: `http(s)://…` for a HOOP server; `matrix+https://…` for a Matrix homeserver.
        token: the account's token.
        draw: uniform in [0, 1), for jittered waits; by default the system's own, so that many sentinels of one
            machine never fall into step.

    Raises:
        ConfigError: the address is none, or names a backend that does not exist here.
    """
    if server.strip().startswith("matrix+"):
        raise ConfigError("Matrix rooms are not built yet", mend="use the http(s) address of a HOOP server")
    from sentinel.rooms.hoop import HoopRoom

    return HoopRoom(server, token, draw=draw or secrets.SystemRandom().random)
