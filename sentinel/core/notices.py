"""What the program itself says in a room, in English and Chinese. Pure.

A notice is a class word, a plain sentence, and what a human can do. It is never a call: it mentions nobody, and no
`@` can get into it, whatever a field holds. It never carries a provider's words: its fields are counts, times and words
of our own lists; anything else is cut down to one harmless line. Source: spec 02 sections 3, 4 and 7.
"""

import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from string import Formatter
from typing import Final, Literal, TypeAlias

from sentinel.core.outcome import FailureClass

Locale: TypeAlias = Literal["en", "zh"]
Field: TypeAlias = str | int | float | datetime


class Notice(StrEnum):
    """Every notice there is. The value is the word in the journal and in the log."""

    # Obituaries, and what follows them.
    DEAD_AUTH = "dead-auth"
    DEAD_QUOTA = "dead-quota"
    DEAD_RATE = "dead-rate"
    DEAD_CONFIG = "dead-config"
    DEAD_MISSING = "dead-missing"
    RESETS = "resets"
    ENDS = "ends"
    BACK = "back"
    # Messages and services that fail while the persona is alive.
    FAILING = "failing"
    PARKED = "parked"
    OUTAGE = "outage"
    THREAD_RENEWED = "thread-renewed"
    LOOP_GUARD = "loop-guard"
    HOP_LIMIT = "hop-limit"
    MISSED = "missed"
    AMBIGUOUS = "ambiguous"
    FILES_LEFT = "files-left"
    INTERRUPTED_ASK = "interrupted-ask"
    # To the owners.
    LEAK = "leak"
    REJECTED = "rejected"
    NEEDS_HUMAN = "needs-human"
    # Answers to commands.
    STOPPED = "stopped"
    NOTHING_TO_STOP = "nothing-to-stop"
    NEW_THREAD = "new-thread"
    RETRYING = "retrying"
    NOTHING_TO_RETRY = "nothing-to-retry"
    PAUSED = "paused"
    RESUMED = "resumed"
    NO_SUCH_CODE = "no-such-code"
    COMMAND_REFUSED = "command-refused"
    STATUS_IDLE = "status-idle"
    STATUS_WORKING = "status-working"
    STATUS_FAILING = "status-failing"
    STATUS_DEAD = "status-dead"
    STATUS_PAUSED = "status-paused"


_EN: Final[Mapping[Notice, str]] = {
    Notice.DEAD_AUTH: "I cannot work (auth): my executor is not logged in, or its key is refused. Your messages are kept. "
    "Somebody who runs me must log the executor in or renew its key; then I go on by myself.",
    Notice.DEAD_QUOTA: "I cannot work (quota): the account of my executor has used up its limit or its credit. Your messages "
    "are kept. Somebody who runs me can raise the limit; otherwise I go on by myself after the reset.",
    Notice.DEAD_RATE: "I cannot work (rate): my executor's service has turned the same message away three times for too "
    "many requests. Your messages are kept. I keep trying from time to time; nothing has to be done.",
    Notice.DEAD_CONFIG: "I cannot work (config): my executor refuses its settings, for example an unknown model. Your messages "
    "are kept. Somebody who runs me must mend the setting; then I go on by myself.",
    Notice.DEAD_MISSING: "I cannot work (missing): my executor, or a setting it needs, is not where it should be. Your "
    "messages are kept. Somebody who runs me must run `sentinel check` and mend what it names; then I go on by myself.",
    Notice.RESETS: "The reset time it told: {reset_at}.",
    Notice.ENDS: "I am going offline for good ({cause}). Messages sent from now on are not answered until somebody who runs "
    "me mends that and starts me again.",
    Notice.BACK: "I am back and work again. Messages waiting: {waiting}.",
    Notice.FAILING: "I am still online, but a message keeps failing ({cause}; attempts: {failures}). It is kept and I go on "
    "trying. Asking in other words, or in smaller pieces, often helps.",
    Notice.PARKED: "A message has failed {failures} times ({cause}), so I have put it aside; it is kept. I try it once more "
    "after my next success, or when an owner writes /retry.",
    Notice.OUTAGE: "A service that I need has been away for {minutes} min ({cause}). Your messages are kept and answered once "
    "it is there again; nothing has to be done.",
    Notice.THREAD_RENEWED: "My earlier working thread here could not be continued ({cause}), so I have begun a new one. What "
    "I need from before, please tell me again.",
    Notice.LOOP_GUARD: "Personas have called me {turns} times here within {minutes} min, so I answer no persona for now. As "
    "soon as a human calls me, I go on.",
    Notice.HOP_LIMIT: "Personas have answered each other {hops} times here since a human spoke, so I leave it at that. As soon "
    "as a human calls me, I go on.",
    Notice.MISSED: "Missed while away: {count} messages to me were too old when I came back. What still matters, please "
    "send again.",
    Notice.AMBIGUOUS: "These names fit several members, so I have called none of them: {names}.",
    Notice.FILES_LEFT: "Files that I made for this answer and could not send: {count}. They were too many, too large, empty, or "
    "no plain files. Please ask for fewer or smaller ones.",
    Notice.INTERRUPTED_ASK: "I was interrupted while working on a message, and part of the work may be done already. I do not "
    "repeat it by myself: an owner decides with /retry.",
    Notice.LEAK: "To my owners (leak): an answer held a secret of mine, so I have not posted it. It is kept for you on my "
    "machine. Please look at it there, and renew that secret if in doubt.",
    Notice.REJECTED: "To my owners (rejected): the room did not accept an answer, and sending it again would not help. It is "
    "kept on my machine. After mending the cause, an owner writes /retry.",
    Notice.NEEDS_HUMAN: "To my owners (needs_human): I cannot tell whether an answer has arrived, so I do not send it again by "
    "myself. Please look for it above; if it is missing, an owner writes /retry.",
    Notice.STOPPED: "Stopped. Messages put aside: {parked}; an owner takes them up again with /retry.",
    Notice.NOTHING_TO_STOP: "Nothing is running here, so there is nothing to stop.",
    Notice.NEW_THREAD: "A new thread begins here with the next message.",
    Notice.RETRYING: "Trying again. Messages: {count}.",
    Notice.NOTHING_TO_RETRY: "No message is put aside here, so there is nothing to try again.",
    Notice.PAUSED: "Paused: I take no new turns. Messages are kept; an owner lets me go on with /resume.",
    Notice.RESUMED: "I take turns again. Messages waiting: {waiting}.",
    Notice.NO_SUCH_CODE: "Nothing waits under that code. Please compare it with the card; it may have been decided already.",
    Notice.COMMAND_REFUSED: "I cannot do /{command} here. What I can do: /status, and for owners /stop, /new, /retry, /pause, "
    "/resume.",
    Notice.STATUS_IDLE: "idle: nothing is running. Messages waiting: {waiting}, put aside: {parked}.",
    Notice.STATUS_WORKING: "working: for {seconds} s. Messages waiting: {waiting}, put aside: {parked}.",
    Notice.STATUS_FAILING: "failing ({cause}): I am online and keep trying. Messages waiting: {waiting}, put aside: {parked}.",
    Notice.STATUS_DEAD: "dead ({cause}): I cannot work until that is mended. Messages waiting: {waiting}, put aside: {parked}.",
    Notice.STATUS_PAUSED: "paused: an owner lets me go on with /resume. Messages waiting: {waiting}, put aside: {parked}.",
}

_ZH: Final[Mapping[Notice, str]] = {
    Notice.DEAD_AUTH: "我无法工作（auth）：我的执行器没有登录，或者它的密钥被拒绝。你们的消息都已保留。请我的管理员重新登录执行器或更换密钥，之后我会自动继续。",
    Notice.DEAD_QUOTA: "我无法工作（quota）：执行器账号的额度或余额已用完。你们的消息都已保留。管理员可以提高额度，否则重置之后我会自动继续。",
    Notice.DEAD_RATE: "我无法工作（rate）：执行器的服务以请求过多为由，连续三次拒绝了同一条消息。你们的消息都已保留。我会不时重试，无需任何操作。",
    Notice.DEAD_CONFIG: "我无法工作（config）：执行器不接受它的设置，例如模型名不存在。你们的消息都已保留。请我的管理员改正设置，之后我会自动继续。",
    Notice.DEAD_MISSING: "我无法工作（missing）：我的执行器或它需要的某项设置不在应有的位置。你们的消息都已保留。请我的管理员运行 `sentinel check` 并修好它指出的问题，之后我会自动继续。",
    Notice.RESETS: "对方告知的重置时间：{reset_at}。",
    Notice.ENDS: "我即将彻底下线（{cause}）。在管理员修好问题并重新启动我之前，之后发来的消息不会得到回答。",
    Notice.BACK: "我回来了，已恢复工作。等待中的消息：{waiting} 条。",
    Notice.FAILING: "我仍然在线，但有一条消息一直失败（{cause}，已尝试 {failures} 次）。它已保留，我会继续尝试。换个说法或拆成几条小消息，往往有用。",
    Notice.PARKED: "有一条消息已失败 {failures} 次（{cause}），我先把它搁置；它已保留。下次成功之后我会再试一次，所有者也可以发送 /retry。",
    Notice.OUTAGE: "我需要的服务已经中断 {minutes} 分钟（{cause}）。你们的消息都已保留，服务恢复后会回答，无需任何操作。",
    Notice.THREAD_RENEWED: "我在这里原来的工作会话无法继续（{cause}），所以开始了新的会话。需要用到的前文，请再告诉我一次。",
    Notice.LOOP_GUARD: "其他 AI 成员在 {minutes} 分钟内已在这里叫了我 {turns} 次，所以我暂时不回答它们。只要有人类成员叫我，我就继续。",
    Notice.HOP_LIMIT: "自人类成员上次发言以来，AI 成员已在这里相互回答了 {hops} 次，所以我到此为止。只要有人类成员叫我，我就继续。",
    Notice.MISSED: "离线期间错过：有 {count} 条发给我的消息在我回来时已经太旧。仍然需要的，请再发一次。",
    Notice.AMBIGUOUS: "以下名字对应多位成员，所以我没有叫其中任何一位：{names}。",
    Notice.FILES_LEFT: "我为这条回答准备的文件有 {count} 个没能发出：数量太多、太大、为空，或者不是普通文件。请让我少发或发小一些的文件。",
    Notice.INTERRUPTED_ASK: "我在处理一条消息时被中断，部分工作可能已经完成。我不会自行重做：请所有者用 /retry 决定。",
    Notice.LEAK: "致我的所有者（leak）：有一条回答含有我的机密，所以没有发出。它保留在我的机器上。请到那里查看，如有疑虑请更换该机密。",
    Notice.REJECTED: "致我的所有者（rejected）：房间没有接受一条回答，重发也无济于事。它保留在我的机器上。解决原因之后，请所有者发送 /retry。",
    Notice.NEEDS_HUMAN: "致我的所有者（needs_human）：我无法确定一条回答是否已经送达，所以不会自行重发。请在上文中查找；如果没有，请所有者发送 /retry。",
    Notice.STOPPED: "已停止。搁置的消息：{parked} 条；所有者可用 /retry 重新处理。",
    Notice.NOTHING_TO_STOP: "这里没有正在运行的任务，无需停止。",
    Notice.NEW_THREAD: "从下一条消息起，这里开始新的会话。",
    Notice.RETRYING: "正在重试。消息：{count} 条。",
    Notice.NOTHING_TO_RETRY: "这里没有搁置的消息，无需重试。",
    Notice.PAUSED: "已暂停：我不再开始新的任务。消息都会保留；所有者可用 /resume 让我继续。",
    Notice.RESUMED: "我重新开始处理任务。等待中的消息：{waiting} 条。",
    Notice.NO_SUCH_CODE: "没有等待该代码的事项。请与卡片核对；它也可能已经处理完毕。",
    Notice.COMMAND_REFUSED: "我在这里不能执行 /{command}。可用的命令：/status；所有者另有 /stop、/new、/retry、/pause、/resume。",
    Notice.STATUS_IDLE: "空闲（idle）：没有正在运行的任务。等待中的消息：{waiting} 条，搁置：{parked} 条。",
    Notice.STATUS_WORKING: "工作中（working）：已 {seconds} 秒。等待中的消息：{waiting} 条，搁置：{parked} 条。",
    Notice.STATUS_FAILING: "出错中（failing，{cause}）：我在线并继续尝试。等待中的消息：{waiting} 条，搁置：{parked} 条。",
    Notice.STATUS_DEAD: "无法工作（dead，{cause}）：需先解决该问题。等待中的消息：{waiting} 条，搁置：{parked} 条。",
    Notice.STATUS_PAUSED: "已暂停（paused）：所有者可用 /resume 让我继续。等待中的消息：{waiting} 条，搁置：{parked} 条。",
}

_TEXTS: Final[Mapping[Locale, Mapping[Notice, str]]] = {"en": _EN, "zh": _ZH}

_OBITUARIES: Final[Mapping[FailureClass, Notice]] = {
    FailureClass.AUTH: Notice.DEAD_AUTH,
    FailureClass.QUOTA: Notice.DEAD_QUOTA,
    FailureClass.RATE: Notice.DEAD_RATE,
    FailureClass.CONFIG: Notice.DEAD_CONFIG,
    FailureClass.MISSING: Notice.DEAD_MISSING,
}

_FIELD_CHARS: Final = 120
_AT_SIGNS: Final = "@＠﹫"


def fields_of(notice: Notice) -> frozenset[str]:
    """Return the names of the fields that `text` needs for this notice; the same in every locale."""
    return frozenset(name for _, name, _, _ in Formatter().parse(_EN[notice]) if name)


def text(notice: Notice, locale: Locale, **fields: Field) -> str:
    """Return the words of a notice. Raises `ValueError` unless `fields` are exactly those of `fields_of(notice)`.

    Counts are whole numbers; `cause` is a `FailureClass` word; times are aware and shown in UTC.
    """
    needed = fields_of(notice)
    if fields.keys() != needed:
        raise ValueError(f"notice {notice} needs the fields {sorted(needed)}, got {sorted(fields)}")
    return _TEXTS[locale][notice].format_map({name: _harmless(value) for name, value in fields.items()})


def obituary(cause: FailureClass, reset_at: datetime | None, locale: Locale) -> str:
    """Return the obituary for a cause of death, with the reset time if one was told.

    Raises `ValueError` for a class that is no proof of death (law 6).
    """
    if cause not in _OBITUARIES:
        raise ValueError(f"{cause} is no cause of death: {sorted(_OBITUARIES)} are")
    said = text(_OBITUARIES[cause], locale)
    if reset_at is None:
        return said
    gap = " " if locale == "en" else ""
    return said + gap + text(Notice.RESETS, locale, reset_at=reset_at)


def _harmless(value: Field) -> str:
    """Return `value` as one short line that calls nobody."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    if isinstance(value, float):
        return f"{value:.0f}"
    one_line = " ".join(str(value).split())
    shown = "".join(" " if one in _AT_SIGNS else one for one in one_line if _is_visible(one))
    return shown.strip()[:_FIELD_CHARS]


def _is_visible(character: str) -> bool:
    return not unicodedata.category(character).startswith("C")
