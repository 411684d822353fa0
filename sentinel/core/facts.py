"""What was read of a persona's home, and the value that a one-value file holds. Pure.

The hands (`sentinel/home/facts.py`) look at the disk once and put what they saw into `HomeFacts`; the gate judges that
and nothing else, so that what was judged is what the turn uses (law 1). Source: spec 02 section 1.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias


class Broken(Exception):
    """One finding of the gate: what is wrong, how to mend it, which file. It never leaves the gate.

    `is_passing`: nothing here is wrong; another machine is out of reach just now, and that heals by itself.
    """

    def __init__(self, what: str, mend: str, *, file: str = "", is_passing: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.mend = mend
        self.file = file
        self.is_passing = is_passing


@dataclass(frozen=True, slots=True)
class Present:
    """A regular file that was read whole. `mode` holds the permission bits, `owner` the numeric user."""

    data: bytes = field(repr=False)
    mode: int
    owner: int


@dataclass(frozen=True, slots=True)
class Absent:
    """No such file."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Something is there and could not be read as a file: that is never the same as absent."""

    why: str


FileFact: TypeAlias = Present | Absent | Unreadable


@dataclass(frozen=True, slots=True)
class DirectoryFacts:
    """The home itself: permission bits and numeric owner."""

    mode: int
    owner: int


@dataclass(frozen=True, slots=True)
class ProgramFacts:
    """What `<adapter>_bin` resolves to, all links followed."""

    path: str
    is_regular: bool
    is_directory: bool
    is_executable: bool
    mode: int
    is_launcher: bool = False
    """Whether it says of itself that it is a launcher (docs/launcher.md)."""


@dataclass(frozen=True, slots=True)
class EnteredFacts:
    """A working directory that could be entered; `path` has all links followed."""

    path: str


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A path that leads nowhere we can go: `why` says where it ended."""

    why: str


@dataclass(frozen=True, slots=True)
class FarFacts:
    """What a launcher's `--probe` told of the user it reaches (docs/launcher.md). Paths are the other side's."""

    user: str
    cwd: str | None
    """The real path of the working directory: "" where the launcher does not tell it, None where it cannot be entered."""
    home: str | None = None
    turns: str | None = None
    """Where the private folders of turns lie."""
    program: str | None = None
    """The executor's absolute path; None where there is none, or the launcher does not tell (`tells_program`)."""
    tells_program: bool = False


@dataclass(frozen=True, slots=True)
class FarSilent:
    """The launcher was asked and gave no usable answer. `is_passing`: it could not get there, which heals by itself."""

    why: str
    is_passing: bool


Far: TypeAlias = FarFacts | FarSilent


@dataclass(frozen=True, slots=True)
class HomeFacts:
    """Everything that the gate may know of a home, read in one go.

    `files` holds the fact of each file that was looked for; `names` are all entries of the directory. `program` and
    `cwd` are None where the file that names them holds no absolute path.
    """

    home: str
    real_home: str
    name: str
    hoop_home: str
    """`HOOP_HOME` with all links followed."""
    directory: DirectoryFacts | Absent | Unreadable
    files: Mapping[str, FileFact]
    names: frozenset[str]
    program: ProgramFacts | Unresolved | None
    cwd: EnteredFacts | Unresolved | None
    uid: int
    user: str
    far: Far | None = None
    """Of an executor that runs as another user: what its launcher said. None where it was not asked."""


ADAPTER_WORDS = ("codex", "claude", "acp", "echo")
ADAPTER_FILES = ("bin", "cwd", "sandbox", "network", "user", "env", "driver", "reply_bridge")
SETTING_FILES = (
    "server",
    "account",
    "token",
    "adapter",
    "model",
    "task.md",
    "owners",
    "wake_from",
    "handoff_from",
    "may_broadcast",
    "reply_wakes",
    "on_interrupt",
    "locale",
    "limits.toml",
    "northbridge",
)
LISTS = ("owners", "wake_from", "handoff_from")
MANY_LINES = frozenset({"task.md", "limits.toml", *LISTS})
LEGACY_FILES = ("session.id", "ws_state.json")
OUR_FILES = frozenset(
    [
        "launch",
        "state.db",
        "state.db-wal",
        "state.db-shm",
        "refusal.json",
        "moved",
        "control.sock",
        "log",
        "turns",
        "imports.json",
        "imports.json.imported",
        "last_run.json",
        "session.id.imported",
        "ws_state.json.imported",
    ]
)

PRIVATE_MODE = 0o600
OTHERS_WRITE = 0o002

_WORD = re.compile(r"[a-z][a-z0-9]{0,31}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def known_settings() -> frozenset[str]:
    """Return every file name that a human may write into a home."""
    own = (f"{word}_{file}" for word in ADAPTER_WORDS for file in ADAPTER_FILES)
    return frozenset(SETTING_FILES) | frozenset(own)


def is_secret(file: str) -> bool:
    """Whether the file's content must never be shown: the room's token and what executors are given."""
    return file == "token" or file.endswith("_env")


def unknown_files(facts: HomeFacts) -> tuple[str, ...]:
    """Return the names in the home that mean nothing to us, sorted: a doctor's warning, never a refusal."""
    return tuple(sorted(facts.names - known_settings() - OUR_FILES - frozenset(LEGACY_FILES)))


def text_of(data: bytes, file: str) -> str:
    """Return `data` as UTF-8 text without a byte order mark and without NUL, or raise `Broken`."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise Broken(f"{file} is not UTF-8", "write it again as UTF-8 text", file=file) from None
    if text.startswith("\ufeff"):
        raise Broken(f"{file} starts with a byte order mark", "save it as UTF-8 without BOM", file=file)
    if "\x00" in text:
        raise Broken(f"{file} holds a NUL character", "write it again as plain text", file=file)
    return text


@lru_cache(maxsize=128)  # a pure function of a few short files, asked several times at each turn
def one_value(data: bytes, file: str) -> str:
    """Return the value of a one-value file: one line, UTF-8, one trailing newline allowed. Else raise `Broken`."""
    text = text_of(data, file)
    value = text.removesuffix("\n")
    mend = f"write one line with one value into {file}"
    if not value:
        raise Broken(f"{file} is empty", mend, file=file)
    if not value.strip():
        raise Broken(f"{file} is blank", mend, file=file)
    if "\n" in value:
        raise Broken(f"{file} holds more than one line", mend, file=file)
    if value.endswith("\r"):
        raise Broken(f"{file} ends its line with a carriage return", "save it with Unix line ends", file=file)
    if _CONTROL.search(value):
        raise Broken(f"{file} holds a control character", mend, file=file)
    if value != value.strip():
        raise Broken(f"{file} has white space around its value", mend, file=file)
    return value


def raw(facts: HomeFacts, file: str) -> Present | None:
    """Return the file as it was read, None when there is none; raise `Broken` when it could not be read."""
    fact = facts.files.get(file, Absent())
    match fact:
        case Present():
            return fact
        case Absent():
            return None
        case Unreadable(why):
            raise Broken(f"{file} cannot be read: {why}", f"make {file} a plain file of yours", file=file)


def required(facts: HomeFacts, file: str, *, example: str) -> str:
    """Return the value of a file that must be there; `example` ends the line that says how to mend it."""
    found = raw(facts, file)
    if found is None:
        raise Broken(f"{file} is absent", f"write {example} into {facts.home}/{file}", file=file)
    return one_value(found.data, file)


def optional(facts: HomeFacts, file: str) -> str | None:
    """Return the value of a file that may be absent. A file that is there must hold a value."""
    found = raw(facts, file)
    return None if found is None else one_value(found.data, file)


def adapter_word(data: bytes) -> str | None:
    """Return the word in the `adapter` file if it is fit to be the beginning of file names, else None."""
    try:
        value = one_value(data, "adapter")
    except Broken:
        return None
    return value if _WORD.fullmatch(value) else None


def private(facts: HomeFacts, file: str) -> Present | None:
    """Return a file that must be the running user's own and 0600; None when absent, `Broken` when exposed."""
    found = raw(facts, file)
    if found is None:
        return None
    if found.owner != facts.uid:
        raise Broken(
            f"{file} belongs to user number {found.owner}, not to {facts.user}",
            f"make it yours: chown {facts.user} {facts.home}/{file}",
            file=file,
        )
    if found.mode != PRIVATE_MODE:
        raise Broken(
            f"{file} has mode {found.mode:04o}, not 0600", f"run chmod 600 {facts.home}/{file}", file=file
        )
    return found
