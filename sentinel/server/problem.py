"""What a client is told when it is not served: RFC 9457 problem details, over HTTP and as a WebSocket `error`.

A `Problem` is raised where the request is found wanting, and rendered once, at the edge. Its `code` is the stable
word that programs compare; `detail` is a sentence for people and never holds a secret or another account's data.
"""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from pydantic import ValidationError

_SHOWN_ERRORS = 8


class Problem(Exception):
    """A refusal: HTTP status, stable code, a sentence, and per-field errors where fields are at fault."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        retry_after_s: float | None = None,
        errors: Sequence[dict[str, str]] = (),
    ) -> None:
        super().__init__(f"{status} {code}: {detail}")
        self.status = status
        self.code = code
        self.detail = detail
        self.retry_after_s = retry_after_s
        self.errors = tuple(errors)

    def body(self) -> dict[str, Any]:
        """Return the `application/problem+json` object."""
        body: dict[str, Any] = {
            "type": f"urn:hoop:problem:{self.code}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
        }
        if self.errors:
            body["errors"] = list(self.errors)
        return body

    def frame(self, ref: str | int | None) -> dict[str, Any]:
        """Return the WebSocket frame `error {ref?, code, detail}`."""
        frame: dict[str, Any] = {"type": "error", "code": self.code, "detail": self.detail}
        if ref is not None:
            frame["ref"] = ref
        if self.retry_after_s is not None:
            frame["retry_after_s"] = self.retry_after_s
        return frame


def not_found(what: str) -> Problem:
    """404: it does not exist, or not for this account; the two look alike on purpose."""
    return Problem(HTTPStatus.NOT_FOUND, "not-found", f"no such {what}, or not for this account")


def too_slow() -> Problem:
    """408: the body stopped arriving."""
    return Problem(
        HTTPStatus.REQUEST_TIMEOUT, "slow", "the body did not arrive in time: send it again, whole"
    )


def unauthorized() -> Problem:
    """401: no token, or one that is not (or no longer) good."""
    return Problem(
        HTTPStatus.UNAUTHORIZED, "unauthorized", "the token is missing, unknown, expired or withdrawn"
    )


def wrong_code() -> Problem:
    """401 of a log-in: the same words whether the account exists or not."""
    return Problem(
        HTTPStatus.UNAUTHORIZED, "wrong-code", "the code is wrong, used or expired: ask for a new one"
    )


def rate_limited(retry_after_s: float) -> Problem:
    """429: nothing was applied."""
    return Problem(
        HTTPStatus.TOO_MANY_REQUESTS,
        "rate-limited",
        f"too many requests: nothing was done, come back in {retry_after_s:.1f} s",
        retry_after_s=retry_after_s,
    )


def unprocessable(field: str, what: str) -> Problem:
    """422: the request can be read, and this field of it cannot stand."""
    return Problem(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "invalid",
        f"{field}: {what}",
        errors=[{"field": field, "what": what}],
    )


def invalid(error: ValidationError) -> Problem:
    """422: name each field that is unknown, absent or wrong, and why; the offending values are not repeated."""
    errors = [
        {
            "field": ".".join(str(step) for step in one["loc"]) or "body",
            "what": _words(one["type"], one["msg"]),
        }
        for one in error.errors(include_url=False, include_input=False, include_context=False)[:_SHOWN_ERRORS]
    ]
    detail = "; ".join(f"{one['field']}: {one['what']}" for one in errors)
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid", detail, errors=errors)


def _words(kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        return "unknown field"
    return message.removeprefix("Value error, ")


def cannot_store(fault: Exception | str) -> Problem:
    """Return 503: the disk, not the request, is at fault, and the same again may work."""
    return Problem(
        HTTPStatus.SERVICE_UNAVAILABLE, "storage", f"the server cannot store now: {fault}", retry_after_s=1.0
    )
