"""What a turn of claude comes to: from its `result` event and from what was heard before it. Pure.

`is_error` decides, for `subtype` says "success" on API errors too; of an error the typed code counts before the HTTP status,
and the text last. A text that no model said is never an answer. Source: spec 02 section 5.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final, cast

from sentinel.core.classify import classify_status, classify_text, failure, told_to_wait
from sentinel.core.evidence import evidence_of, is_blank
from sentinel.core.lines import Json, count_at, object_at, text_at
from sentinel.core.outcome import Answer, Counter, Failure, FailureClass, Usage

_BY_CODE: Final[Mapping[str, FailureClass]] = MappingProxyType(
    {
        "authentication_failed": FailureClass.AUTH,
        "billing_error": FailureClass.QUOTA,
        "rate_limit": FailureClass.RATE,
        "model_not_found": FailureClass.CONFIG,
        "invalid_request": FailureClass.INPUT_REJECTED,
        "server_error": FailureClass.UNAVAILABLE,
        "max_output_tokens": FailureClass.TRUNCATED,
    }
)
# Where the text of an error says more than its code.
_FINER: Final = frozenset(
    {
        (FailureClass.RATE, FailureClass.QUOTA),
        (FailureClass.UNAVAILABLE, FailureClass.TIMEOUT),
        (FailureClass.INPUT_REJECTED, FailureClass.CONTEXT_FULL),
        (FailureClass.INPUT_REJECTED, FailureClass.REFUSED),
    }
)


@dataclass(slots=True)
class Heard:
    """What the model said since the last tool result, and what the program said in its stead."""

    texts: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """(message id, text) of each text block."""
    synthetic: str = ""
    code: str = ""
    is_refusal: bool = False
    retry_wait_s: float = 0.0
    resets_at: datetime | None = None

    def last_message(self) -> str:
        """Return all text blocks of the last message that has text; `result` holds only its last block."""
        last = next((message for message, text in reversed(self.texts) if not is_blank(text)), None)
        return "".join(text for message, text in self.texts if message == last)


def answer_of(result: Json, heard: Heard, thread: str | None) -> Answer | None:
    """Return the answer, or None if there was an error or no model said anything."""
    text, said = text_at(result, "result"), heard.last_message()
    if result.get("is_error") is not False or is_blank(said):
        return None
    if is_blank(text) or said.endswith(text):
        text = said
    return Answer(text, thread=thread, usage=_usage(result), total=_total(result))


def failure_of(result: Json, heard: Heard, *, now: datetime, thread: str | None) -> Failure:
    """Return why a `result` that holds no answer holds none."""
    text = text_at(result, "result")
    if result.get("is_error") is not True:
        kind = FailureClass.EMPTY if is_blank(text) else FailureClass.BUG
        said = "an empty result" if is_blank(text) else f"the program answered, not the model: {text}"
        return Failure(kind, evidence_of(said), thread=thread)
    said = text or "; ".join(_strings(result.get("errors"))) or heard.synthetic
    made = failure(_class_of(result, heard, said), said, now=now, thread=thread)
    if made.kind not in (FailureClass.RATE, FailureClass.QUOTA):
        return made
    told = heard.resets_at or (now + timedelta(seconds=heard.retry_wait_s) if heard.retry_wait_s else None)
    return told_to_wait(made, told, now=now)


def _class_of(result: Json, heard: Heard, said: str) -> FailureClass:
    if heard.is_refusal:
        return FailureClass.REFUSED
    kind, spoken = _BY_CODE.get(heard.code), classify_text(said)
    if kind is not None:
        return spoken if spoken is not None and (kind, spoken) in _FINER else kind
    return classify_status(count_at(result, "api_error_status")) or spoken or FailureClass.CRASH


def _strings(value: object) -> list[str]:
    return (
        [one for one in cast("Sequence[object]", value) if isinstance(one, str)]
        if isinstance(value, list)
        else []
    )


def _usage(result: Json) -> Usage:
    """Return the tokens of this turn. Cost is told per session only: see `_total`."""
    told = object_at(result, "usage")
    cached = count_at(told, "cache_read_input_tokens")
    return Usage(
        input_tokens=count_at(told, "input_tokens") + count_at(told, "cache_creation_input_tokens") + cached,
        cached_tokens=cached,
        output_tokens=count_at(told, "output_tokens"),
        reasoning_tokens=count_at(object_at(told, "output_tokens_details"), "thinking_tokens"),
    )


def _total(result: Json) -> Counter:
    """Return the session's running totals over all models, side requests and cost included."""
    models = object_at(result, "modelUsage")
    each = [object_at(models, name) for name in models]
    cached = sum(count_at(one, "cacheReadInputTokens") for one in each)
    fresh = sum(count_at(one, "inputTokens") + count_at(one, "cacheCreationInputTokens") for one in each)
    cost = result.get("total_cost_usd")
    return Counter(
        input_tokens=fresh + cached,
        cached_tokens=cached,
        output_tokens=sum(count_at(one, "outputTokens") for one in each),
        reasoning_tokens=sum(count_at(one, "thinkingTokens") for one in each),
        cost_usd=float(cost) if isinstance(cost, int | float) else None,
    )
