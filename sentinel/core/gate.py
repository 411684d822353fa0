"""The gate: seven checks between a persona's home and any executor. Fail closed. Pure.

Run by `sentinel check`, at start, and at each turn. A `Passed` can only be had here, and only it holds a `Persona`: the
right to act is a value. Each check reports its first finding. A check whose inputs could not be read says so; it never
passes. Source: spec 02 section 2; law 2.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from sentinel.core import executor, far, identity, settings, voice, walls
from sentinel.core.executor import Adapters
from sentinel.core.facts import (
    LEGACY_FILES,
    OTHERS_WRITE,
    Absent,
    Broken,
    DirectoryFacts,
    HomeFacts,
    Present,
    Unreadable,
    is_secret,
)
from sentinel.core.model import Account, Kind
from sentinel.core.persona import Persona

CHECKS = ("home", "identity", "adapter", "executor", "model", "walls", "voice")
GROUP_OR_OTHERS_WRITE = 0o022


@dataclass(frozen=True, slots=True)
class Check:
    """One check's result: `what` was found and, unless ok, how to `mend` it. `file` names the file at fault, if one.

    `is_passing`: it is not ok only because another machine is out of reach just now.
    """

    check: str
    ok: bool
    what: str
    mend: str = ""
    file: str = ""
    is_passing: bool = False

    def line(self) -> str:
        """Return the line for standard error (spec 02 section 2)."""
        return f"gate: {self.check}: {self.what}: {self.mend}"


@dataclass(frozen=True, slots=True)
class Passed:
    """All seven said yes: the persona that this turn may run."""

    persona: Persona
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class GateRefused:
    """At least one said no: nothing may run."""

    checks: tuple[Check, ...]

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that said no, in order."""
        return tuple(check for check in self.checks if not check.ok)

    @property
    def is_passing(self) -> bool:
        """Whether nothing is wrong with the home: what it needs elsewhere is out of reach, an outage and no death."""
        return all(check.is_passing for check in self.failed)


Verdict: TypeAlias = Passed | GateRefused


def judge(facts: HomeFacts, adapters: Adapters, *, guarded: bool | None) -> Verdict:
    """Run the seven checks over what was read.

    Args:
        facts: one reading of the home.
        adapters: the kinds of executors this build has, by the word in the `adapter` file.
        guarded: whether `run` was given a conversation to guard; None where that is not asked (`check` without CID).

    """
    deeds: tuple[Callable[[], str], ...] = (
        lambda: _home(facts),
        lambda: identity.check(facts),
        lambda: executor.check_adapter(facts, adapters),
        lambda: executor.check_executor(facts, adapters),
        lambda: executor.check_model(facts),
        lambda: walls.check(facts, adapters),
        lambda: voice.check(facts, adapters, guarded=guarded),
    )
    readable = isinstance(facts.directory, DirectoryFacts)
    checks = tuple(_run(name, deed, readable=readable) for name, deed in zip(CHECKS, deeds, strict=True))
    if all(check.ok for check in checks):
        return Passed(_persona(facts, adapters), checks)
    return GateRefused(checks)


def confirm_identity(persona: Persona, account: Account) -> Check | None:
    """Return None when the server's "who am I" is this persona's account, else the refusal of check `identity`."""
    if persona.account not in (account.uid, account.name):
        what = f"the token belongs to {account.name} ({account.uid}) on the server, not to {persona.account}"
        mend = "put the right token into token, or the right name into account"
        return Check("identity", ok=False, what=what, mend=mend, file="account")
    if account.kind is not Kind.PERSONA:
        what = f"{account.name} is a {account.kind} on the server, not a persona"
        return Check(
            "identity", ok=False, what=what, mend="use the token of a persona's account", file="token"
        )
    return None


def _run(name: str, deed: Callable[[], str], *, readable: bool) -> Check:
    if not readable and name != "home":
        what = "cannot be judged: the home could not be read"
        return Check(name, ok=False, what=what, mend="mend check home first")
    try:
        return Check(name, ok=True, what=deed())
    except Broken as broken:
        return Check(
            name,
            ok=False,
            what=broken.what,
            mend=broken.mend,
            file=broken.file,
            is_passing=broken.is_passing,
        )


def _home(facts: HomeFacts) -> str:
    """Check 1: say whose home it is, or raise `Broken`."""
    match facts.directory:
        case Absent():
            raise Broken(f"{facts.home} does not exist", "make it with sentinel persona new")
        case Unreadable(why):
            raise Broken(f"{facts.home} cannot be read: {why}", "name the home of a persona")
        case DirectoryFacts(mode, owner):
            _must_be_private(facts, mode, owner)
    if "moved" in facts.names:
        what = "this persona was moved to another place (it holds the marker moved)"
        raise Broken(what, "run it there; remove the marker only if that one is gone for good", file="moved")
    for file in LEGACY_FILES:
        if file in facts.names:
            mend = f"run sentinel persona adopt {facts.home}"
            raise Broken(f"{file} of an older home is not imported yet", mend, file=file)
    _must_be_ours(facts)
    return f"{facts.home} is a private directory of {facts.user}"


def _must_be_private(facts: HomeFacts, mode: int, owner: int) -> None:
    if owner != facts.uid:
        what = f"{facts.home} belongs to user number {owner}, not to {facts.user}"
        raise Broken(what, f"run as its owner, or run chown -R {facts.user} {facts.home}")
    if mode & GROUP_OR_OTHERS_WRITE:
        what = f"{facts.home} is writable by group or others (mode {mode:04o})"
        raise Broken(what, f"run chmod 700 {facts.home}")


def _must_be_ours(facts: HomeFacts) -> None:
    """Refuse a file that somebody else could change in place; private files are judged by their own checks."""
    for file, fact in facts.files.items():
        if not isinstance(fact, Present) or is_secret(file):
            continue
        if fact.owner not in (facts.uid, 0) or fact.mode & OTHERS_WRITE:
            what = f"{file} can be changed by others (owner {fact.owner}, mode {fact.mode:04o})"
            raise Broken(what, f"run chown {facts.user} and chmod 600 on {facts.home}/{file}", file=file)


def _persona(facts: HomeFacts, adapters: Adapters) -> Persona:
    adapter = executor.declared(facts, adapters)
    sandbox, network = walls.pair_of(facts, adapter)
    return Persona(
        name=facts.name,
        home=facts.real_home,
        server=identity.server(facts),
        account=identity.account(facts),
        token=identity.token(facts),
        adapter=adapter.name,
        model=executor.check_model(facts),
        binary=executor.program_of(facts, adapter),
        cwd=walls.working_directory(facts, adapter),
        sandbox=sandbox,
        network=network,
        user=executor.user_of(facts, adapter),
        far=far.answer(facts) if far.is_elsewhere(facts, adapter) else None,
        env=executor.environment_of(facts, adapter),
        task_md=voice.task(facts, adapter.name),
        owners=settings.uids(facts, "owners"),
        wake_from=settings.wake_from(facts),
        handoff_from=settings.uids(facts, "handoff_from"),
        may_broadcast=settings.switch(facts, "may_broadcast"),
        reply_wakes=settings.switch(facts, "reply_wakes"),
        on_interrupt=settings.on_interrupt(facts),
        locale=settings.locale(facts),
        limits=settings.limits(facts),
    )
