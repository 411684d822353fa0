"""Who plays in `sentinel demo`: Echo, and a persona for each executor that is found; their homes. Source: spec 09."""

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sentinel.core.errors import ConfigError
from sentinel.core.gate import Passed
from sentinel.home import build, templates
from sentinel.home.write import put


@dataclass(frozen=True, slots=True)
class Cast:
    """A persona of the demo: its account, and how its home is made."""

    name: str
    adapter: str
    template: str
    model: str
    binary: str | None = None


_GUESTS = (
    # adapter, name, template, the variable that may name its model, the model otherwise
    ("codex", "Gode", "gode", "HOOP_DEMO_CODEX_MODEL", "gpt-5-codex"),
    ("claude", "Claude", "claude-core", "HOOP_DEMO_CLAUDE_MODEL", "sonnet"),
)


def cast_for(homes: Path, environ: Mapping[str, str] = os.environ) -> tuple[Cast, ...]:
    """Return Echo, and a persona for each executor that is on PATH, or was at an earlier start.

    One whose executor has gone since still belongs to the cast: its gate says what is missing, which silence would hide.
    """
    cast = [Cast("Echo", "echo", "gode", "echo")]
    for adapter, name, template, variable, model in _GUESTS:
        found = shutil.which(adapter, path=environ.get("PATH", ""))
        binary = str(Path(found).absolute()) if found else None
        guest = Cast(name, adapter, template, environ.get(variable) or model, binary)
        if binary or home_path(homes, guest).exists():
            cast.append(guest)
    return tuple(cast)


def home_path(homes: Path, one: Cast) -> Path:
    """Return where a persona's home is, or will be."""
    return homes / one.name.lower()


def home_of(data: Path, one: Cast, url: str, token: str | None, *, owner: str) -> Path:
    """Return the persona's home, made where it is missing; its server's address is the one of this run.

    Raises `ConfigError`, with the gate's lines, for a new home that the gate refuses: it is not left behind.
    """
    home = home_path(data / "homes", one)
    if home.exists():
        put(home, "server", f"{url}\n".encode())
        return home
    cwd = data / "work" / one.name.lower()
    cwd.mkdir(mode=0o700, parents=True, exist_ok=True)
    files = build.draft(
        templates.load(one.template),
        adapter=one.adapter,
        values={"server": url, "account": one.name, "model": one.model, "owners": owner, "token": token},
        own={"bin": one.binary, "cwd": str(cwd), "sandbox": "read-only", "network": "off", "user": None},
    )
    verdict = build.place(home, files, interpreter=sys.executable, must_pass=True)
    if not isinstance(verdict, Passed):
        raise ConfigError("\n".join(check.line() for check in verdict.failed))
    return home
