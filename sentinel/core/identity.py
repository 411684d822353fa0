"""Who the persona is in its room: server, account, token, and whose word counts. Pure; a part of the gate.

Source: spec 02 section 2, check 2.
"""

import re
from urllib.parse import urlsplit

from sentinel.core import settings
from sentinel.core.facts import Broken, HomeFacts, one_value, private, required
from sentinel.core.persona import Secret

SCHEMES = ("http", "https", "matrix+https")


def check(facts: HomeFacts) -> str:
    """Check 2: say who the persona is, or raise `Broken`."""
    where, who = server(facts), account(facts)
    token(facts)
    settings.uids(facts, "owners")
    settings.wake_from(facts)
    settings.uids(facts, "handoff_from")
    return f"{who} on {where}, token private"


def server(facts: HomeFacts) -> str:
    """Return the base URL of the room backend."""
    value = required(facts, "server", example="the base URL of the room backend")
    mend = f"write one of {', '.join(f'{scheme}://host' for scheme in SCHEMES)}"
    try:
        url = urlsplit(value)
        _ = url.port  # reading it is what refuses a bad one
    except ValueError:
        raise Broken("server is no URL", mend, file="server") from None
    if url.username is not None or url.password is not None:
        raise Broken("server holds credentials", "leave them out: the token has its own file", file="server")
    if url.scheme not in SCHEMES or not url.hostname or re.search(r"\s", value):
        raise Broken(f"server is {value[:80]!r}, which names no host", mend, file="server")
    if url.query or url.fragment:
        raise Broken("server has a query or a fragment", mend, file="server")
    return value


def account(facts: HomeFacts) -> str:
    """Return the account's name or id, as the operator wrote it."""
    return required(facts, "account", example="the account's name or id")


def token(facts: HomeFacts) -> Secret:
    """Return the account's token from its private file."""
    found = private(facts, "token")
    if found is None:
        mend = f"write the account's token into {facts.home}/token, mode 0600"
        raise Broken("token is absent", mend, file="token")
    value = one_value(found.data, "token")
    if not value.isascii() or " " in value:
        mend = "copy it again, without anything else"
        raise Broken("token is not one word of plain characters", mend, file="token")
    return Secret(value)
