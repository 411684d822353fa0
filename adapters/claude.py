"""`claude -p --output-format stream-json`: one process, one turn. A codec; no I/O.

`is_error` of the `result` event decides: `subtype` says "success" on API errors too, and then the result's *text* is
the error message, so it is never an answer. We choose the session's id. Chat text is live there (a leading `/` is a
command, `@/any/path` reads that file): the prompt defuses it, and the walls of this file refuse it a second time.
Source: spec 02 section 5; captured with claude 2.1.332.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Final

from adapters.claude_result import Heard, answer_of, failure_of
from sentinel.core.classify import ended_by_us, ended_without_result
from sentinel.core.codec import (
    Adapter,
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
from sentinel.core.lines import Json, JsonLines, Noise, count_at, object_at, objects_at, text_at
from sentinel.core.outcome import Failure, FailureClass, Outcome
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

_SYNTHETIC: Final = "<synthetic>"
_KNOWN: Final = frozenset(
    {"system", "stream_event", "conversation_reset", "control_response", "tool_progress", "prompt_suggestion"}
)


class ClaudeCodec:
    """One turn of `claude -p`."""

    stop: tuple[StopStep, ...] = (StopStep("SIGTERM", 5.0), StopStep("SIGKILL", 1.0))
    """SIGTERM lets claude end its tools' shells and write the session's file."""

    def __init__(self, request: TurnRequest) -> None:
        self._request = request
        self._lines = JsonLines()
        self._expected = request.new_thread if request.resume is None else request.resume
        self._thread: str | None = None
        self._open_tools: set[str] = set()
        self._heard = Heard()
        self._trouble = ""
        self._result: Json | None = None

    def argv(self) -> tuple[str, ...]:
        """Return the command; the prompt comes on standard input."""
        request = self._request
        return (
            *(request.binary, "-p", "--output-format=stream-json", "--verbose"),
            *("--session-id" if request.resume is None else "--resume", self._expected),
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
        return [event for one in self._lines.feed(data) for event in self._on(one)]

    def outcome(self, status: ExitStatus, *, stderr: str, now: datetime) -> Outcome:
        """Decide. `now` must be aware and in the machine's zone: claude prints the time of a reset in local time."""
        for one in self._lines.close():
            self._on(one)
        if self._is_elsewhere():
            said = f"asked for session {self._expected}, claude named {self._thread}"
            return Failure(FailureClass.THREAD_LOST, said)
        result = self._result
        answer = None if result is None else answer_of(result, self._heard, self._thread)
        if answer is not None:
            return answer
        by_us = ended_by_us(status, trouble=self._trouble, stderr=stderr, now=now, thread=self._thread)
        if by_us is not None:
            return by_us
        if result is None:
            began = self._thread is not None
            return ended_without_result(status, stderr=stderr, began=began, now=now, thread=self._thread)
        return failure_of(result, self._heard, now=now, thread=self._thread)

    def _is_elsewhere(self) -> bool:
        return self._thread is not None and self._thread != self._expected

    def _on(self, event: Json | Noise) -> list[Event]:
        if isinstance(event, Noise):
            return [Unknown(event.what)]
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
                self._heard.retry_wait_s = count_at(event, "retry_delay_ms") / 1000
            case "system", "model_refusal_no_fallback":
                self._heard.is_refusal = True
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
            self._heard.resets_at = from_epoch(count_at(info, "resetsAt"))

    def _on_assistant(self, event: Json) -> None:
        message = object_at(event, "message")
        if text_at(message, "model") == _SYNTHETIC or text_at(event, "error"):
            self._heard.code = text_at(event, "error") or self._heard.code
            self._heard.synthetic = "".join(text_at(one, "text") for one in objects_at(message, "content"))
            return
        self._trouble = ""
        is_sub_agent = isinstance(event.get("parent_tool_use_id"), str)
        for block in objects_at(message, "content"):
            if text_at(block, "type") == "tool_use":
                self._open_tools.add(text_at(block, "id"))
            elif text_at(block, "type") == "text" and not is_sub_agent:
                self._heard.texts.append((text_at(message, "id"), text_at(block, "text")))

    def _on_user(self, message: Json) -> None:
        for block in objects_at(message, "content"):
            if text_at(block, "type") == "tool_result":
                self._open_tools.discard(text_at(block, "tool_use_id"))
                self._heard.texts.clear()


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


@dataclass(frozen=True, slots=True)
class ClaudeAdapter:
    """The kind of executor `claude`."""

    name: str = "claude"
    needs_binary: bool = True
    litter: tuple[str, ...] = ()

    @property
    def walls(self) -> Mapping[tuple[Sandbox, bool], tuple[str, ...]]:
        """Return the pairs that can be enforced, and how."""
        return WALLS

    def codec(self, request: TurnRequest) -> Codec:
        """Make the codec of one turn."""
        return ClaudeCodec(request)


ADAPTER: Final[Adapter] = ClaudeAdapter()
