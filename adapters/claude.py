"""`claude -p --output-format stream-json`: one process, one turn. A codec; no I/O.

`is_error` of the `result` event decides: `subtype` says "success" on API errors too, and then the result's *text* is
the error message, so it is never an answer. We choose the session's id. Chat text is live there (a leading `/` is a
command, `@/any/path` reads that file): the prompt defuses it, and the walls of this file refuse it a second time.
Source: spec 02 section 5; captured with claude 2.1.332.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final, cast

from sentinel.core.classify import (
    classify_status,
    classify_text,
    ended_by_us,
    ended_without_result,
    failure,
    told_to_wait,
)
from sentinel.core.codec import (
    Codec,
    Ended,
    Event,
    ExitStatus,
    Progress,
    Sandbox,
    StopStep,
    ThreadStarted,
    TurnRequest,
    Unknown,
)
from sentinel.core.evidence import evidence_of, is_blank
from sentinel.core.lines import (
    Absurd,
    Json,
    LineSplitter,
    count_at,
    object_at,
    objects_at,
    parse_object,
    text_at,
)
from sentinel.core.outcome import Answer, Counter, Failure, FailureClass, Outcome, Usage
from sentinel.core.resets import from_epoch

_READING: Final = "Read,Grep,Glob"
_WEB: Final = "WebFetch,WebSearch"
_ACTING: Final = "Bash,Edit,NotebookEdit,Write"
_EVERYTHING: Final = f"{_READING},{_WEB},{_ACTING}"

# `dontAsk` denies whatever no rule allows, and works for root too. `--restricted` confines the reading tools, and with
# them `@path` in the prompt, to the working directory: without it `@/etc/passwd` is read in every mode.
_READ_ONLY: Final = ("--restricted", "--permission-mode=dontAsk")

WALLS: Final[Mapping[tuple[Sandbox, bool], tuple[str, ...]]] = MappingProxyType(
    {
        (Sandbox.READ_ONLY, False): (*_READ_ONLY, f"--tools={_READING}"),
        (Sandbox.READ_ONLY, True): (*_READ_ONLY, f"--tools={_READING},{_WEB}", f"--allowedTools={_WEB}"),
        (Sandbox.DANGER_FULL_ACCESS, True): (
            *("--permission-mode=dontAsk", f"--tools={_EVERYTHING}", f"--allowedTools={_EVERYTHING}"),
        ),
    }
)
"""(sandbox, network) -> flags. claude has no file-system sandbox for Bash, so workspace-write cannot be enforced."""

# Nothing of the user's or the project's settings, hooks, commands and MCP servers: what a turn may do stands here.
_ALWAYS: Final = ("--setting-sources=", "--disable-slash-commands", "--strict-mcp-config")

_ENV: Final[Mapping[str, str]] = MappingProxyType(
    {
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "2",
        "API_TIMEOUT_MS": "120000",
    }
)

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
_SYNTHETIC: Final = "<synthetic>"
_KNOWN: Final = frozenset(
    {"system", "stream_event", "conversation_reset", "control_response", "tool_progress", "prompt_suggestion"}
)


@dataclass(slots=True)
class _Said:
    """What the model said since the last tool result, and what the program said in its stead."""

    texts: list[tuple[str, str]]  # (message id, text)
    synthetic: str = ""
    code: str = ""
    is_refusal: bool = False

    def last_message(self) -> str:
        """Return all text blocks of the last message that has text; `result` holds only its last block."""
        last = next((message for message, text in reversed(self.texts) if not is_blank(text)), None)
        return "".join(text for message, text in self.texts if message == last)


class ClaudeCodec:
    """One turn of `claude -p`."""

    stop: tuple[StopStep, ...] = (StopStep("SIGTERM", 5.0), StopStep("SIGKILL", 1.0))
    """SIGTERM lets claude end its tools' shells and write the session's file."""

    def __init__(self, request: TurnRequest) -> None:
        self._request = request
        self._lines = LineSplitter()
        self._expected = request.new_thread if request.resume is None else request.resume
        self._thread: str | None = None
        self._open_tools: set[str] = set()
        self._said = _Said([])
        self._trouble = ""
        self._retry_wait_s = 0.0
        self._resets_at: datetime | None = None
        self._result: Json | None = None

    def argv(self) -> tuple[str, ...]:
        """Return the command; the prompt comes on standard input."""
        request = self._request
        is_new = request.resume is None or request.retry_new_thread
        return (
            *(request.binary, "-p", "--output-format=stream-json", "--verbose"),
            *("--session-id" if is_new else "--resume", self._expected),
            *("--model", request.model),
            *WALLS[request.sandbox, request.network],
            *_ALWAYS,
            *("--settings", _settings(request.denied_paths)),
        )

    def env(self) -> Mapping[str, str]:
        """Return the bounds on its retries, and that it talks to nobody but its model."""
        return _ENV

    def to_send(self) -> bytes:
        """Return the prompt in UTF-8."""
        return self._request.prompt.encode("utf-8", "replace")

    def receive(self, data: bytes) -> list[Event]:
        """Take a chunk of standard output in."""
        return [event for line in self._lines.feed(data) for event in self._on_line(line)]

    def outcome(self, status: ExitStatus, *, stderr: str, now: datetime) -> Outcome:
        """Decide. `now` must be aware and in the machine's zone: claude prints the time of a reset in local time."""
        rest = self._lines.close()
        if rest is not None:
            self._on_line(rest)
        if self._is_elsewhere():
            said = f"asked for session {self._expected}, claude named {self._thread}"
            return Failure(FailureClass.THREAD_LOST, said)
        result = self._result
        if result is not None and result.get("is_error") is False:
            answer = self._answer(result)
            if answer is not None:
                return answer
        by_us = ended_by_us(status, trouble=self._trouble, stderr=stderr, now=now, thread=self._thread)
        if by_us is not None:
            return by_us
        if result is None:
            began = self._thread is not None
            return ended_without_result(status, stderr=stderr, began=began, now=now, thread=self._thread)
        return self._no_answer(result, now)

    def _answer(self, result: Json) -> Answer | None:
        """Return the answer, or None if no model said one."""
        text, said = text_at(result, "result"), self._said.last_message()
        if is_blank(
            said
        ):  # a text in `result` alone is the program's own, from a command that ran instead of a turn
            return None
        if is_blank(text) or said.endswith(text):
            text = said
        return Answer(text, thread=self._thread, usage=_usage(result), total=_total(result))

    def _no_answer(self, result: Json, now: datetime) -> Failure:
        text = text_at(result, "result")
        if result.get("is_error") is not True:
            kind = FailureClass.EMPTY if is_blank(text) else FailureClass.BUG
            said = "an empty result" if is_blank(text) else f"the program answered, not the model: {text}"
            return Failure(kind, evidence_of(said), thread=self._thread)
        said = text or "; ".join(_strings(result.get("errors"))) or self._said.synthetic
        made = failure(self._class_of(result, said), said, now=now, thread=self._thread)
        if made.kind in (FailureClass.RATE, FailureClass.QUOTA):
            told = self._resets_at or (
                now + timedelta(seconds=self._retry_wait_s) if self._retry_wait_s else None
            )
            made = told_to_wait(made, told, now=now)
        return made

    def _class_of(self, result: Json, said: str) -> FailureClass:
        if self._said.is_refusal:
            return FailureClass.REFUSED
        kind, spoken = _BY_CODE.get(self._said.code), classify_text(said)
        if kind is not None:
            return spoken if spoken is not None and (kind, spoken) in _FINER else kind
        return classify_status(count_at(result, "api_error_status")) or spoken or FailureClass.CRASH

    def _is_elsewhere(self) -> bool:
        return self._thread is not None and self._thread != self._expected

    def _on_line(self, line: bytes | Absurd) -> list[Event]:
        if isinstance(line, Absurd):
            return [Unknown(f"a line of {line.size_bytes} bytes, skipped")]
        if not line.strip():
            return []
        event = parse_object(line)
        if event is None:
            return [Unknown(f"a line of {len(line)} bytes that is not a JSON object")]
        if self._result is not None or self._is_elsewhere():
            return [Progress("after-the-end")]
        return self._on_event(event)

    def _on_event(self, event: Json) -> list[Event]:
        kind = text_at(event, "type")
        match kind, text_at(event, "subtype"):
            case "system", "init":
                return self._on_init(text_at(event, "session_id"))
            case "system", "api_retry":
                self._trouble = f"{text_at(event, 'error')} (status {event.get('error_status')})"
                self._retry_wait_s = count_at(event, "retry_delay_ms") / 1000
            case "system", "model_refusal_no_fallback":
                self._said.is_refusal = True
            case "rate_limit_event", _:
                self._on_rate_limit(object_at(event, "rate_limit_info"))
            case "assistant", _:
                self._on_assistant(event)
            case "user", _:
                self._on_user(object_at(event, "message"))
            case "result", _:
                self._result = event
                return [Ended()]
            case _ if kind not in _KNOWN:
                return [Unknown(f"event {kind[:60]!r}")]
            case _:
                pass
        return [Progress(kind, open_tools=len(self._open_tools))]

    def _on_init(self, session: str) -> list[Event]:
        if self._thread == session:
            return [Progress("init", open_tools=len(self._open_tools))]
        self._thread = session or None
        if self._is_elsewhere():
            return [Ended()]
        return [ThreadStarted(session)] if session else [Unknown("init without a session_id")]

    def _on_rate_limit(self, info: Json) -> None:
        """Keep the reset of a limit that *rejected*; "allowed" and "allowed_warning" are no walls."""
        if text_at(info, "status") == "rejected":
            self._resets_at = from_epoch(count_at(info, "resetsAt"))

    def _on_assistant(self, event: Json) -> None:
        message = object_at(event, "message")
        if text_at(message, "model") == _SYNTHETIC or text_at(event, "error"):
            self._said.code = text_at(event, "error") or self._said.code
            self._said.synthetic = "".join(text_at(one, "text") for one in objects_at(message, "content"))
            return
        self._trouble = ""
        is_sub_agent = isinstance(event.get("parent_tool_use_id"), str)
        for block in objects_at(message, "content"):
            if text_at(block, "type") == "tool_use":
                self._open_tools.add(text_at(block, "id"))
            elif text_at(block, "type") == "text" and not is_sub_agent:
                self._said.texts.append((text_at(message, "id"), text_at(block, "text")))

    def _on_user(self, message: Json) -> None:
        for block in objects_at(message, "content"):
            if text_at(block, "type") == "tool_result":
                self._open_tools.discard(text_at(block, "tool_use_id"))
                self._said.texts.clear()


def _settings(denied_paths: Sequence[str]) -> str:
    """Return the settings of a turn: no tool reads or writes beneath `denied_paths`, nor does `@path` in the prompt."""
    rules = [
        f"{tool}(/{_escaped(path)}{below})"
        for path in denied_paths
        for tool in ("Read", "Edit")
        for below in ("", "/**")
    ]
    return json.dumps({"permissions": {"deny": rules}}, separators=(",", ":"))


def _escaped(path: str) -> str:
    r"""Return an absolute path as a pattern that fits only it: `*`, `?`, `[`, `]` and `\` stand for themselves."""
    return "".join(f"\\{one}" if one in "*?[]\\" else one for one in path.rstrip("/"))


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


@dataclass(frozen=True, slots=True)
class ClaudeAdapter:
    """The kind of executor `claude`."""

    name: str = "claude"
    needs_binary: bool = True

    @property
    def walls(self) -> Mapping[tuple[Sandbox, bool], tuple[str, ...]]:
        """Return the pairs that can be enforced, and how."""
        return WALLS

    def codec(self, request: TurnRequest) -> Codec:
        """Make the codec of one turn."""
        return ClaudeCodec(request)


ADAPTER: Final = ClaudeAdapter()
