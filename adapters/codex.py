"""`codex exec --json`: one process, one turn. A codec; no I/O.

Only `turn.completed` and `turn.failed` decide; a top-level `error` is mostly a retry that recovers, an item of type
`error` is a warning. The answer is the last `agent_message`. `resume` takes neither sandbox nor cwd and inherits neither,
so both stand before it on every turn; it starts a new thread when it does not know the name it was given, so the
named thread must be the one that was asked for. Source: spec 02 section 5; captured with codex 0.171.0.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Final

from sentinel.core.classify import classify_text, ended_by_us, ended_without_result, failure
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
from sentinel.core.evidence import is_blank
from sentinel.core.lines import Json, JsonLines, Noise, count_at, object_at, text_at
from sentinel.core.outcome import Answer, Counter, Failure, FailureClass, Outcome

# Hosted tools act outside of the sandbox: whoever has no network must not get them. `web_search` is a switch of its own,
# for the sandbox's `network_access` does not remove it.
_NO_HOSTED_TOOLS: Final = (
    *("-c", 'web_search="disabled"'),
    *("-c", "features.apps=false"),
    *("-c", "features.browser_use=false"),
    *("-c", "features.computer_use=false"),
    *("-c", "features.image_generation=false"),
)
_NO_TMP: Final = (
    *("-c", "sandbox_workspace_write.exclude_slash_tmp=true"),
    *("-c", "sandbox_workspace_write.exclude_tmpdir_env_var=true"),
)
_WRITE: Final = ("-s", "workspace-write", *_NO_TMP)

WALLS: Final[Mapping[tuple[Sandbox, bool], tuple[str, ...]]] = MappingProxyType(
    {
        (Sandbox.READ_ONLY, False): ("-s", "read-only", *_NO_HOSTED_TOOLS),
        (Sandbox.WORKSPACE_WRITE, False): (
            *_WRITE,
            *("-c", "sandbox_workspace_write.network_access=false"),
            *_NO_HOSTED_TOOLS,
        ),
        (Sandbox.WORKSPACE_WRITE, True): (*_WRITE, *("-c", "sandbox_workspace_write.network_access=true")),
        (Sandbox.DANGER_FULL_ACCESS, True): ("-s", "danger-full-access"),
    }
)
"""(sandbox, network) -> flags. codex has no network in read-only, and cannot take it away in danger-full-access."""

# No key, and what `inherit="core"` gives; but that drops the turn's mark as well, by which a tool that fled from a dead
# executor is found and ended.
_SEEN_BY_TOOLS: Final = (
    '["PATH","HOME","USER","LOGNAME","SHELL","LANG","LC_*","TZ","TMPDIR","TEMP","TMP","HOOP_TURN"]'
)

# As `-c features.X`, not `--disable X`: a version that does not know X then warns, where `--disable` would not start.
# Retries per provider can only be set by the provider's name, which stands in the user's config.toml: not by us.
_ALWAYS: Final = (
    *("-c", "features.plugins=false"),
    *("-c", "features.unbounded_connection_retries=false"),
    *("-c", 'shell_environment_policy.inherit="all"'),
    *("-c", f"shell_environment_policy.include_only={_SEEN_BY_TOOLS}"),
    *("-c", "analytics.enabled=false"),
    *("-c", "check_for_update_on_startup=false"),
)

_TOOLS: Final = frozenset(
    {
        "command_execution",
        "file_change",
        "web_search",
        "mcp_tool_call",
        "collab_tool_call",
        "image_generation",
    }
)
_QUIET_ITEMS: Final = frozenset({"agent_message", "reasoning", "todo_list", "error"})
_USAGE_ERROR: Final = 2


def _outbox_of(request: TurnRequest) -> tuple[str, ...]:
    """Return what opens the turn's outbox, and nothing else of its folder, to a sandbox that ends at the working directory."""
    if request.outbox is None or request.sandbox is not Sandbox.WORKSPACE_WRITE:
        return ()
    return ("-c", f"sandbox_workspace_write.writable_roots=[{json.dumps(request.outbox)}]")


class CodexCodec:
    """One turn of `codex exec`."""

    stop: tuple[StopStep, ...] = (StopStep("SIGINT", 2.0), StopStep("SIGTERM", 1.0), StopStep("SIGKILL", 1.0))
    """SIGINT first: only then does codex end its tools' shells itself and close the thread's record."""

    def __init__(self, request: TurnRequest) -> None:
        self._request = request
        self._lines = JsonLines()
        self._thread: str | None = None
        self._wrong_thread = False
        self._began = False
        self._open_tools: set[str] = set()
        self._message = ""
        self._trouble = ""
        self._completed: Json | None = None
        self._failed: str | None = None

    def argv(self) -> tuple[str, ...]:
        """Return the command; the prompt comes on standard input (`-`), never as an argument."""
        request = self._request
        return (
            *(request.binary, "exec", "--json", "--skip-git-repo-check"),
            *WALLS[request.sandbox, request.network],
            *_outbox_of(request),
            *("-C", request.cwd, "-m", request.model),
            *_ALWAYS,
            *(f"--image={path}" for path in request.images),
            *(("resume", request.resume) if request.resume is not None else ()),
            "-",
        )

    def env(self) -> Mapping[str, str]:
        """Return nothing: every setting of ours is a flag."""
        return {}

    def to_send(self) -> bytes:
        """Return the prompt in UTF-8."""
        return self._request.prompt.encode("utf-8", "replace")

    def receive(self, data: bytes) -> list[Event]:
        """Take a chunk of standard output in."""
        return [event for one in self._lines.feed(data) for event in self._on(one)]

    def outcome(self, status: ExitStatus, *, stderr: str, now: datetime) -> Outcome:
        """Decide. `now` must be aware and in the machine's zone: codex prints the time of a reset in local time."""
        for one in self._lines.close():
            self._on(one)
        if self._wrong_thread or (self._completed is not None and self._is_elsewhere()):
            said = f"asked for thread {self._request.resume}, codex named {self._thread or 'none'}"
            return Failure(FailureClass.THREAD_LOST, said)
        if self._completed is not None and not is_blank(self._message):
            return Answer(
                self._message, thread=self._thread, total=_total(object_at(self._completed, "usage"))
            )
        by_us = ended_by_us(status, trouble=self._trouble, stderr=stderr, now=now, thread=self._thread)
        if by_us is not None:
            return by_us
        if self._completed is not None:
            return Failure(FailureClass.EMPTY, "turn.completed without any text", thread=self._thread)
        if self._failed is not None:
            return failure(_class_of(self._failed), self._failed, now=now, thread=self._thread)
        return self._without_result(status, stderr, now)

    def _without_result(self, status: ExitStatus, stderr: str, now: datetime) -> Failure:
        if status.code == _USAGE_ERROR:
            return failure(FailureClass.BUG, stderr, now=now, thread=self._thread)
        return ended_without_result(status, stderr=stderr, began=self._began, now=now, thread=self._thread)

    def _is_elsewhere(self) -> bool:
        return self._request.resume is not None and self._thread != self._request.resume

    def _on(self, event: Json | Noise) -> list[Event]:
        if isinstance(event, Noise):
            return [Unknown(event.what)]
        if self._wrong_thread or self._completed is not None or self._failed is not None:
            return [Progress("after-the-end")]
        return self._on_event(event)

    def _on_event(self, event: Json) -> list[Event]:
        match text_at(event, "type"):
            case "thread.started":
                return self._on_thread(text_at(event, "thread_id"))
            case "turn.started":
                self._began = True
                return [self._progress("turn.started")]
            case "item.started" | "item.updated" | "item.completed" as kind:
                return [self._on_item(kind, object_at(event, "item"))]
            case "error":
                self._trouble = text_at(event, "message")
                return [self._progress("error")]
            case "turn.completed":
                self._completed = event
                return [Ended()]
            case "turn.failed":
                self._failed = text_at(object_at(event, "error"), "message") or self._trouble or "turn.failed"
                return [Ended()]
            case other:
                return [Unknown(f"event {other[:60]!r}")]

    def _on_thread(self, thread: str) -> list[Event]:
        self._thread = thread or None
        if self._is_elsewhere():
            self._wrong_thread = True
            return [Ended()]
        return [ThreadStarted(thread)] if thread else [Unknown("thread.started without a thread_id")]

    def _on_item(self, kind: str, item: Json) -> Event:
        what = text_at(item, "type")
        if what != "error":  # an item of type error is a warning, and comes before the turn too
            self._began, self._trouble = True, ""
        if what in _TOOLS:
            (self._open_tools.discard if kind == "item.completed" else self._open_tools.add)(
                text_at(item, "id")
            )
        elif what == "agent_message" and kind == "item.completed":
            self._message = text_at(item, "text")
        elif what not in _QUIET_ITEMS:
            return Unknown(f"item {what[:60]!r}")
        return self._progress(f"{kind} {what}")

    def _progress(self, what: str) -> Progress:
        return Progress(what, open_tools=len(self._open_tools))


def _class_of(said: str) -> FailureClass:
    """Return the class of a `turn.failed` message: text only, codex tells no code here."""
    known = classify_text(said)
    if known is not None:
        return known
    # Of all errors only a 400 shows the provider's bare JSON body.
    return FailureClass.INPUT_REJECTED if said.lstrip().startswith("{") else FailureClass.CRASH


def _total(usage: Json) -> Counter:
    """Return the thread's running total: what `turn.completed` reports is never one turn's usage alone."""
    return Counter(
        input_tokens=count_at(usage, "input_tokens"),
        cached_tokens=count_at(usage, "cached_input_tokens"),
        output_tokens=count_at(usage, "output_tokens"),
        reasoning_tokens=count_at(usage, "reasoning_output_tokens"),
    )


@dataclass(frozen=True, slots=True)
class CodexAdapter:
    """The kind of executor `codex`."""

    name: str = "codex"
    needs_binary: bool = True
    litter: tuple[str, ...] = (".git", ".codex", ".agents", ".aws")

    @property
    def walls(self) -> Mapping[tuple[Sandbox, bool], tuple[str, ...]]:
        """Return the pairs that can be enforced, and how."""
        return WALLS

    def codec(self, request: TurnRequest) -> Codec:
        """Make the codec of one turn."""
        return CodexCodec(request)


ADAPTER: Final[Adapter] = CodexAdapter()
