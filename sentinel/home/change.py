"""Change one file of a home: judged first, written only if nothing gets worse. Source: spec 09 `persona set`."""

from pathlib import Path

from sentinel.core.errors import UsageError
from sentinel.core.facts import known_settings
from sentinel.core.gate import Check, Passed
from sentinel.home.examine import examine
from sentinel.home.write import put, sync


def must_be_known(file: str) -> None:
    """Raise `UsageError` for a name that is no file of a home."""
    if file not in known_settings():
        raise UsageError(f"{file[:80]!r} is no file of a persona's home", mend="see docs/persona-home.md")


def change(home: Path, file: str, data: bytes | None) -> tuple[Check, ...]:
    """Put `data` into `file` (None: remove the file); return the checks that forbid it, none when it is done.

    Forbidden is what would break a check that was fine, or leave this very file at fault. A home that is broken elsewhere can
    so be mended file by file. Raises `UsageError` if the home cannot be read.
    """
    before, after = examine(home, guarded=None), examine(home, guarded=None, instead={file: data})
    fine = {check.check for check in before.checks if check.ok}
    if not isinstance(after, Passed):
        if not any(check.ok for check in after.checks):
            raise UsageError(after.failed[0].what, mend=after.failed[0].mend)
        worse = tuple(one for one in after.failed if one.check in fine or one.file == file)
        if worse:
            return worse
    if data is None:
        (home / file).unlink(missing_ok=True)
        sync(home)
    else:
        put(home, file, data)
    return ()
