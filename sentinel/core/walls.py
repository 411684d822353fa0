"""The walls around an executor: sandbox, network, and the directory it works in. Pure; a part of the gate.

Whether the executor can *read* its files is deliberately not judged: macOS grants that to the executor's own binary, so
any test of ours would measure the wrong program. Source: spec 02 section 2, check 6.
"""

from sentinel.core import far, settings
from sentinel.core.codec import Adapter, Sandbox
from sentinel.core.executor import Adapters, declared
from sentinel.core.facts import Broken, EnteredFacts, HomeFacts, Unresolved, raw, required

_MEND_CWD = "write the absolute path of the executor's own directory into {home}/{file}"
BUILT_IN_CWD = "/"
"""Where a built-in executor without a `cwd` file stands: it touches no file, so anywhere will do."""


def check(facts: HomeFacts, adapters: Adapters) -> str:
    """Check 6: say which walls stand, or raise `Broken`."""
    adapter = declared(facts, adapters)
    wall, network = pair = pair_of(facts, adapter)
    said = _in_words(wall, network=network)
    if pair not in adapter.walls:
        can = "; ".join(_in_words(one, network=net) for one, net in adapter.walls)
        file = f"{adapter.name}_sandbox"
        raise Broken(f"{adapter.name} cannot enforce {said}", f"choose one that it can: {can}", file=file)
    return f"{said}, in {working_directory(facts, adapter)}"


def pair_of(facts: HomeFacts, adapter: Adapter) -> tuple[Sandbox, bool]:
    """Return the declared (sandbox, network); only a built-in executor may leave them out (read-only, off)."""
    sandbox, network = f"{adapter.name}_sandbox", f"{adapter.name}_network"
    words = tuple(str(one) for one in Sandbox)
    if adapter.needs_binary:
        required(facts, sandbox, example=f"one of {', '.join(words)}")
        required(facts, network, example="on or off")
    wall = Sandbox(settings.word_of(facts, sandbox, words, default=Sandbox.READ_ONLY))
    return wall, settings.switch(facts, network)


def working_directory(facts: HomeFacts, adapter: Adapter) -> str:
    """Return the declared directory: absolute, enterable, apart from the homes of personas. Else `Broken`."""
    file = f"{adapter.name}_cwd"
    if not adapter.needs_binary and raw(facts, file) is None:
        return BUILT_IN_CWD
    path = declared_directory(facts, file)
    if far.is_elsewhere(facts, adapter):
        for one in (path, far.entered(facts, adapter, path)):
            _must_be_apart(facts, path, one, file)
        return path
    mend = _MEND_CWD.format(home=facts.home, file=file)
    match facts.cwd:
        case None:
            raise Broken(f"{file} was not looked up", mend, file=file)
        case Unresolved(why):
            raise Broken(f"{file} is {path}, which {why}", mend, file=file)
        case EnteredFacts(real):
            _must_be_apart(facts, path, real, file)
    return path


def declared_directory(facts: HomeFacts, file: str) -> str:
    """Return the absolute path in `file`, or raise `Broken`; whether it is there is not judged."""
    path = required(facts, file, example="the absolute path of a directory")
    if not path.startswith("/"):
        mend = _MEND_CWD.format(home=facts.home, file=file)
        raise Broken(f"{file} is {path}, which is not absolute", mend, file=file)
    return path


def _must_be_apart(facts: HomeFacts, path: str, real: str, file: str) -> None:
    for root in (facts.hoop_home, facts.real_home):
        how = "lies in" if _holds(root, real) else "holds" if _holds(real, root) else None
        if how:
            raise Broken(
                f"{file} is {path}, which {how} {root}, where tokens are kept",
                "give the executor a directory apart from the homes of personas",
                file=file,
            )


def _holds(outer: str, inner: str) -> bool:
    """Whether `inner` is `outer` or lies in it, by components; both absolute, all links followed."""
    parts = [part for part in outer.split("/") if part]
    return [part for part in inner.split("/") if part][: len(parts)] == parts


def _in_words(wall: Sandbox, *, network: bool) -> str:
    return f"{wall} with network {'on' if network else 'off'}"
