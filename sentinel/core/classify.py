"""Why a turn failed: from how the process ended, and from what the executor said of itself. Pure.

Only an executor's *own* error channel is ever read here (typed codes, its error events, its stderr): never an answer,
never the output of a tool. The table is read from the top, the first match counts. Source: spec 02 section 5, the
executors' fact sheet section 6; the tests run it over every captured transcript.
"""

import re
from dataclasses import replace
from datetime import datetime

from sentinel.core.codec import EndedBy, ExitStatus
from sentinel.core.evidence import evidence_of
from sentinel.core.outcome import Failure, FailureClass
from sentinel.core.resets import LONG_WAIT, told_reset

REFUSED_BY_LAUNCHER = 78
NOT_RUNNABLE = frozenset({126, 127})

# Texts are compared case-folded and with the typographic apostrophe folded to the plain one.
_TABLE: tuple[tuple[FailureClass, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        (FailureClass.THREAD_LOST, r"no rollout found|failed to read session metadata|no conversation found"),
        (FailureClass.THREAD_LOST, r"does not match any session title|session id \S+ is already in use"),
        (FailureClass.BUSY, r"already has an active writer"),
        (FailureClass.CONTEXT_FULL, r"context window|context[_ ]length|prompt is too long|request too large"),
        (
            FailureClass.TRUNCATED,
            r"max_output_tokens|output token maximum|maximum number of turns|maximum budget",
        ),
        (FailureClass.REFUSED, r"safeguards flagged|content_filter|usage policy|invalid_prompt|cyber_policy"),
        (
            FailureClass.QUOTA,
            r"(?:usage|session|weekly|\d+-hour|spend(?:ing)?)[ _]limit|hit your (?:\w+ )?limit",
        ),
        (
            FailureClass.QUOTA,
            r"insufficient_quota|quota[ _]exceeded|current quota|credit balance|out of credits|billing",
        ),
        (
            FailureClass.AUTH,
            r"invalid api key|invalid_api_key|incorrect api key|invalid x-api-key|not logged in",
        ),
        (
            FailureClass.AUTH,
            r"missing environment variable|failed to authenticate|authentication_(?:failed|error)",
        ),
        (FailureClass.AUTH, r"please run /login|token (?:has )?expired|refresh token|\bunauthorized\b"),
        (
            FailureClass.CONFIG,
            r"model_not_found|\bmodels?\b.{0,80}(?:does not exist|not supported|not found)",
        ),
        (
            FailureClass.CONFIG,
            r"does not have access|selected model \(|error loading config|finding codex home",
        ),
        (FailureClass.CONFIG, r"model provider .* not found|cannot be used with root/sudo"),
        (FailureClass.INPUT_REJECTED, r"input_too_large|exceeds the maximum length"),
        (FailureClass.MISSING, r"command not found|no such file or directory \(os error 2\)"),
        (FailureClass.RATE, r"rate[ _]limit|too many requests"),
        (FailureClass.TIMEOUT, r"^request timed out"),
        (
            FailureClass.UNAVAILABLE,
            r"high demand|at capacity|overloaded|internal server error|service unavailable",
        ),
        (
            FailureClass.UNAVAILABLE,
            r"stream disconnected|connection (?:failed|refused|dropped|reset|closed|error)",
        ),
        (
            FailureClass.UNAVAILABLE,
            r"waiting for network|error sending request|timed out|empty or malformed response",
        ),
        (FailureClass.UNAVAILABLE, r"server_error|bad gateway|gateway time-?out|idle timeout"),
    )
)

# What executors write on stderr when *we* called them wrongly.
_OUR_BUG = re.compile(
    r"unexpected argument|unknown option|argument '.*' is invalid|no prompt provided|input must be provided"
    r"|failed to read prompt from stdin|requires --verbose|not inside a trusted directory|unknown feature flag"
    r"|invalid session id|also needs --fork-session|requires a valid session id"
)

_STATUS = re.compile(r"(?:status:?|api error:?|http|code:?)\s*\(?(?P<a>[45]\d\d)\b|\((?P<b>[45]\d\d)\)")
_BY_STATUS = {
    400: FailureClass.INPUT_REJECTED,
    401: FailureClass.AUTH,
    402: FailureClass.QUOTA,
    403: FailureClass.AUTH,
    404: FailureClass.CONFIG,
    408: FailureClass.UNAVAILABLE,
    413: FailureClass.CONTEXT_FULL,
    422: FailureClass.INPUT_REJECTED,
    429: FailureClass.RATE,
}
_SERVER_ERRORS = range(500, 600)

_ENDINGS: dict[EndedBy, tuple[FailureClass, str]] = {
    EndedBy.SPAWN: (FailureClass.MISSING, "the executor could not be started"),
    EndedBy.STOP: (FailureClass.STOPPED, "stopped by a human"),
    EndedBy.TERM: (FailureClass.INTERRUPTED, "the sentinel was going down"),
    EndedBy.FLOOD: (FailureClass.CRASH, "the executor printed more than the limit on bytes"),
    EndedBy.SILENCE: (FailureClass.TIMEOUT, "silent for longer than the limit before a result"),
    EndedBy.TOTAL: (FailureClass.TIMEOUT, "the turn took longer than the limit"),
}


def classify_status(status: int) -> FailureClass | None:
    """Return the class of an HTTP status that the executor told, or None where it tells nothing."""
    return FailureClass.UNAVAILABLE if status in _SERVER_ERRORS else _BY_STATUS.get(status)


def classify_text(text: str) -> FailureClass | None:
    """Return the class of an executor's own error text, or None where the table does not know it."""
    folded = text.casefold().replace("\u2019", "'").strip()
    for kind, pattern in _TABLE:
        if pattern.search(folded):
            return kind
    found = _STATUS.search(folded)
    return classify_status(int(found["a"] or found["b"])) if found else None


def failure(kind: FailureClass, said: str, *, now: datetime, thread: str | None = None) -> Failure:
    """Make the failure of class `kind` out of what the executor said, with its told reset, if any.

    A `rate` whose told reset is more than 15 minutes away is a `quota`; a `quota` keeps no shorter wait than it was told.
    """
    retry_at = told_reset(said, now=now) if kind in (FailureClass.RATE, FailureClass.QUOTA) else None
    made = Failure(kind, evidence_of(said) or kind.value, retry_at, thread)
    return told_to_wait(made, retry_at, now=now)


def told_to_wait(made: Failure, retry_at: datetime | None, *, now: datetime) -> Failure:
    """Return `made` with a reset that the executor told beside its text; far away, it makes a `rate` a `quota`."""
    if retry_at is None or retry_at <= now:
        return made
    is_far = retry_at - now > LONG_WAIT
    kind = FailureClass.QUOTA if made.kind is FailureClass.RATE and is_far else made.kind
    return replace(made, kind=kind, retry_at=retry_at)


def ended_by_us(
    status: ExitStatus, *, trouble: str, stderr: str, now: datetime, thread: str | None = None
) -> Failure | None:
    """Return the failure of a turn that we ended before its result, or None if it ended by itself.

    `trouble` is the executor's last own error event that nothing followed: a turn that ran into a time limit while its
    executor was saying "connection refused, trying again" is that outage, not a hang. `stderr` is only shown, and only
    of what never started: there the runner says why in it.
    """
    if status.ended_by is EndedBy.ITSELF:
        return None
    kind, why = _ENDINGS[status.ended_by]
    reported = classify_text(trouble) if kind is FailureClass.TIMEOUT and trouble else None
    if reported is not None:
        return failure(reported, trouble, now=now, thread=thread)
    evidence = evidence_of(stderr) if status.ended_by is EndedBy.SPAWN else ""
    return Failure(kind, evidence or why, thread=thread)


def ended_without_result(
    status: ExitStatus, *, stderr: str, began: bool, now: datetime, thread: str | None
) -> Failure:
    """Return the failure of a process that ended by itself and said no result.

    A turn that `began` is a crash, whatever stands on stderr (a log); of one that did not, stderr is the only place
    where the executor can say why.
    """
    if status.code == REFUSED_BY_LAUNCHER:
        return Failure(FailureClass.MISSING, evidence_of(stderr) or "refused: exit 78", thread=thread)
    if status.code in NOT_RUNNABLE:
        return Failure(FailureClass.MISSING, evidence_of(stderr) or f"exit {status.code}", thread=thread)
    if not began and status.code is not None and status.code > 0:
        said = _last_error(stderr)
        if _OUR_BUG.search(said.casefold()):
            return Failure(FailureClass.BUG, evidence_of(said), thread=thread)
        kind = classify_text(said)
        if kind is not None:
            return failure(kind, said, now=now, thread=thread)
    how = f"signal {-status.code}" if status.code is not None and status.code < 0 else f"exit {status.code}"
    return Failure(FailureClass.CRASH, evidence_of(f"{how} without a result: {stderr[-200:]}"), thread=thread)


def _last_error(stderr: str) -> str:
    """Return the line that says why: the last one that begins like an error, else the last one that is not a warning."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    others = [line for line in lines if not line.lower().startswith("warning")]
    return (errors or others or [""])[-1]
