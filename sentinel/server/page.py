"""The web page's static files and its own two calls, under the strictest policy that the page can live with.

Source: spec 01 section 3 (Content-Security-Policy; markdown rendered safely).
"""

from http import HTTPStatus
from importlib.resources import files
from pathlib import PurePosixPath

from sentinel.server.accounts import account_json
from sentinel.server.http import Answer, Call, Reply, answer_json
from sentinel.server.problem import Problem
from sentinel.server.requests import RenderInput
from sentinel.server.strict_json import parse_as

_TYPES = {
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".svg": b"image/svg+xml",
    ".png": b"image/png",
    ".ico": b"image/x-icon",
    ".webmanifest": b"application/manifest+json",
}
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self' blob:; "
    b"connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)


async def index(call: Call) -> Reply:
    """Serve the page."""
    del call
    return _static("index.html")


async def asset(call: Call) -> Reply:
    """Serve one file of the page."""
    return _static(call.path("file"))


async def session(call: Call) -> Reply:
    """Say who is logged in: `{user: {uid, name, kind} | null}`, so that a first visit is no error in the console."""
    account = call.session.account if call.session is not None else None
    return answer_json({"user": account_json(account) if account is not None else None})


async def render(call: Call) -> Reply:
    """Turn texts of messages into safe HTML: `{texts}` -> `{html}`, same order."""
    from sentinel.server.render import render as to_html

    wanted = parse_as(RenderInput, await call.json())
    return answer_json({"html": [to_html(text) for text in wanted.texts]})


def _static(name: str) -> Answer:
    """Return a file of the page folder; only a plain name that lies in it is looked for."""
    content_type = _TYPES.get(PurePosixPath(name).suffix)
    file = files("sentinel.server").joinpath("page", name)
    if content_type is None or PurePosixPath(name).name != name or not file.is_file():
        raise Problem(HTTPStatus.NOT_FOUND, "not-found", "there is no such file")
    policy = ((b"content-security-policy", _POLICY), (b"x-frame-options", b"DENY"))
    return Answer(HTTPStatus.OK, file.read_bytes(), content_type, policy)
