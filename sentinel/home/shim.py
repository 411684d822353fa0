"""The `launch` shim: the few lines of sh through which a service enters. Source: spec 02 section 2.

It holds one value, the interpreter, and execs the shared sentinel, so that an upgrade of the package upgrades every
persona. `-E` and `-P` keep PYTHON* variables and the current directory from putting code of theirs in ours; `-I` would
also hide a package that was installed for the user alone. A package that is gone or broken is 78 as well: python's own
code for it, 1, would be restarted for ever.
"""

import shlex
from pathlib import Path

from sentinel.home.write import put

NAME = "launch"
MODE = 0o700

_TEXT = """\
#!/bin/sh
# Fail-closed entry of this persona: sh HOME/launch HOME CID... Written by sentinel persona; holds one value.
interpreter={interpreter}
refuse() {{ echo "gate: $1" >&2; exit 78; }}
[ -f "$interpreter" ] && [ -x "$interpreter" ] || refuse "executor: the interpreter $interpreter of the launch shim \
is missing or not executable: install the sentinel again, then run sentinel persona set NAME launch"
[ $# -ge 2 ] || refuse "voice: no home and conversation were given: call it as sh HOME/launch HOME CID"
exec "$interpreter" -E -P -c 'import sys
try:
    from sentinel.cli.main import main
except ImportError as missing:
    print(f"gate: executor: {{sys.executable}} has no working sentinel: {{missing}}: install it there", file=sys.stderr)
    sys.exit(78)
main()' run "$@"
"""


def text(interpreter: str) -> str:
    """Return the shim that enters through `interpreter` (an absolute path)."""
    return _TEXT.format(interpreter=shlex.quote(interpreter))


def write(home: Path, interpreter: str) -> None:
    """Put the shim into `home`."""
    put(home, NAME, text(interpreter).encode(), mode=MODE)
