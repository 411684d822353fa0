"""How systemd's unit files spell a value. Pure. Source: systemd.syntax(7), systemd.service(5), systemd.unit(5).

Callers have refused control characters before (`service.must_fit`), so no value ends a line.
"""

import re

_PLAIN = re.compile(r"[A-Za-z0-9:_.]")
_NAME_BYTES = 255


def quoted(value: str) -> str:
    """Return one word of an assignment list (`Environment=`): quotes and backslashes escaped, `%` no specifier."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def argument(value: str) -> str:
    """Return one word of a command line: as `quoted`, and `$` names no variable."""
    return quoted(value).replace("$", "$$")


def text(value: str) -> str:
    """Return a value that is one text to the end of the line (`Description=`)."""
    return value.replace("%", "%%").replace("\\", "/")


def unit_name(label: str) -> str:
    r"""Return `label` as a unit's name can hold it: other bytes than letters, digits, `:_.-` become `\xHH`."""
    return "".join(_spelled(one) for one in label)


def is_too_long(file: str) -> bool:
    """Return whether no unit can be called so."""
    return len(file.encode()) > _NAME_BYTES


def _spelled(one: str) -> str:
    if _PLAIN.fullmatch(one) or one == "-":
        return one
    return "".join(f"\\x{byte:02x}" for byte in one.encode())
