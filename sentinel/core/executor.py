"""What runs the turns: the adapter, the program, the user it runs as, the model. Pure; a part of the gate.

Source: spec 02 section 2, checks 3 to 5.
"""

import re
from collections.abc import Mapping
from typing import TypeAlias

from sentinel.core import far, settings
from sentinel.core.codec import Adapter
from sentinel.core.facts import (
    OTHERS_WRITE,
    Broken,
    HomeFacts,
    Present,
    ProgramFacts,
    Unresolved,
    optional,
    required,
)
from sentinel.core.persona import Secret

Adapters: TypeAlias = Mapping[str, Adapter]
"""The kinds of executors this build has, by the word in the `adapter` file."""


def check_adapter(facts: HomeFacts, adapters: Adapters) -> str:
    """Check 3: say which adapter is declared and how it is driven, or raise `Broken`."""
    word = _adapter_word(facts, adapters)
    file = f"{word}_driver"
    driver = settings.word_of(facts, file, ("oneshot", "warm"), default="oneshot")
    if driver == "warm":
        raise Broken(f"{file} is warm, which this build does not have", "write oneshot", file=file)
    return f"{word}, {driver}"


def check_executor(facts: HomeFacts, adapters: Adapters) -> str:
    """Check 4: say which program runs, and as whom, or raise `Broken`."""
    adapter = declared(facts, adapters)
    user = user_of(facts, adapter)
    environment_of(facts, adapter)
    if not adapter.needs_binary:
        return f"{adapter.name} is built in, runs as {user}"
    path = standing_program(facts, adapter)
    if user != facts.user:
        return f"{path}, {far.check(facts, adapter, user)}"
    if isinstance(facts.program, ProgramFacts) and facts.program.is_launcher:
        file = f"{adapter.name}_user"
        raise Broken(
            f"{adapter.name}_bin is a launcher to another user, and {file} names nobody but {facts.user}",
            f"write the user that the executor must run as into {facts.home}/{file}",
            file=file,
        )
    return f"{path}, runs as {user}"


def standing_program(facts: HomeFacts, adapter: Adapter) -> str:
    """Return the declared path of the executor or its launcher once it is seen to be a program, or raise `Broken`."""
    file = f"{adapter.name}_bin"
    path = program_of(facts, adapter)
    mend = f"write the absolute path of the executor into {facts.home}/{file}"
    if not path.startswith("/"):
        raise Broken(f"{file} is {path}, which is not absolute", mend, file=file)
    match facts.program:
        case None:
            raise Broken(f"{file} was not looked up", mend, file=file)
        case Unresolved(why):
            raise Broken(f"{file} is {path}, which {why}", mend, file=file)
        case ProgramFacts() as program:
            _must_run(program, path, file)
            if far.is_elsewhere(facts, adapter):
                _must_be_launcher(program, path, adapter, file)
    return path


def _must_be_launcher(program: ProgramFacts, path: str, adapter: Adapter, file: str) -> None:
    """Refuse the executor itself where its launcher belongs: not even a probe may start one as the running user."""
    for one in (path, program.path):
        if one.rpartition("/")[2].partition(".")[0] == adapter.name:
            what = f"{file} is {path}, which is {adapter.name} itself, and {adapter.name}_user names another user"
            raise Broken(
                what, "name the launcher that reaches that user (sentinel persona launcher)", file=file
            )


def check_model(facts: HomeFacts) -> str:
    """Check 5: return the model's name, or raise `Broken`."""
    value = required(facts, "model", example="the model's name")
    mend = "write the model's name as the executor knows it"
    if re.search(r"\s", value):
        raise Broken("model is more than one word", mend, file="model")
    if value.startswith("-"):
        raise Broken("model starts with a dash, so it would be read as an option", mend, file="model")
    return value


def declared(facts: HomeFacts, adapters: Adapters) -> Adapter:
    """Return the declared adapter for a check that builds on it; what is wrong with it is said by check 3."""
    try:
        return adapters[_adapter_word(facts, adapters)]
    except Broken as broken:
        what = f"cannot be judged without an adapter: {broken.what}"
        raise Broken(what, "mend check adapter first", file=broken.file) from None


def program_of(facts: HomeFacts, adapter: Adapter) -> str:
    """Return the declared path of the executor, "" for one that is built in."""
    if not adapter.needs_binary:
        return ""
    return required(facts, f"{adapter.name}_bin", example=f"the absolute path of {adapter.name}")


def user_of(facts: HomeFacts, adapter: Adapter) -> str:
    """Return the user that the executor runs as, the running one by default; `Broken` where nobody else can run it."""
    file = f"{adapter.name}_user"
    user = optional(facts, file) or facts.user
    if user != facts.user and not adapter.needs_binary:
        raise Broken(
            f"{file} is {user}, and {adapter.name} is built in: it runs as {facts.user}",
            f"remove {file}, or run the sentinel as {user}",
            file=file,
        )
    return user


def environment_of(facts: HomeFacts, adapter: Adapter) -> dict[str, Secret]:
    """Return what the executor is told beside PATH, HOME, USER, LANG, TZ and TMPDIR; never the room's token."""
    token = facts.files.get("token")
    text = token.data.decode("utf-8", "replace").strip() if isinstance(token, Present) else ""
    return settings.environment(facts, f"{adapter.name}_env", token=text)


def _adapter_word(facts: HomeFacts, adapters: Adapters) -> str:
    known = ", ".join(adapters)
    word = required(facts, "adapter", example=f"one of {known}")
    if word not in adapters:
        raise Broken(
            f"adapter is {word[:40]!r}, which is unknown here", f"write one of: {known}", file="adapter"
        )
    return word


def _must_run(program: ProgramFacts, path: str, file: str) -> None:
    said = f"{file} is {path}, which"
    if program.is_directory:
        raise Broken(f"{said} is a directory", "name the program in it", file=file)
    if not program.is_regular:
        raise Broken(f"{said} is not a regular file", "name a program", file=file)
    if not program.is_executable:
        raise Broken(f"{said} is not executable", f"run chmod +x {program.path}", file=file)
    if program.mode & OTHERS_WRITE:
        raise Broken(f"{said} is writable by others", f"run chmod o-w {program.path}", file=file)
