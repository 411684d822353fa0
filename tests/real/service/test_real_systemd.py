"""The installed units under a real `systemd --user`; an instance that cannot be had is a failure, not a skip."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sentinel.home import shim
from sentinel.ops import systemd
from sentinel.ops.service import Service
from tests.fakes.town import Town

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]
HERE = Path(__file__).parent
NOBODY_YET = 4242  # a user number without a name: nothing on this machine is its own


def under_systemd(uid, home, *command):
    """Run a command as `uid` with a user manager of its own."""
    inside = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
    done = subprocess.run(
        [*inside, "bash", str(HERE / "user_systemd.sh"), str(uid), str(home), *map(str, command)],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def folder():
    """A folder that other users can reach; pytest's own they cannot."""
    made = Path(tempfile.mkdtemp(prefix="hoop-", dir="/var/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


def test_systemd_analyze_is_here():
    assert shutil.which("systemd-analyze"), "install systemd: the units are verified with it"


LIFE = """\
set -eu
export HOOP_HOME="$1" XDG_STATE_HOME="$2" CID="$3"
PY=$4; cd "$5"
s() { "$PY" -m sentinel.cli.main service "$@"; }
u=com.hoop.gode.ws.service
state() { systemctl --user show -P ActiveState "$1"; }
pid() { systemctl --user show -P MainPID $u; }
till() { for _ in $(seq 600); do [ "$($1 ${3:-})" = "$2" ] && return; sleep 0.05; done; echo "never: $1 ${3:-} is $2"; systemctl --user status $u; exit 1; }
s install gode --cid "$CID"
till state active $u
echo "status $(systemctl --user show -P StatusText $u)"
one=$(pid); kill -9 "$one"
till state activating $u; till state active $u
two=$(pid); [ "$one" != "$two" ] && echo "killed: started again"
kill -TERM "$two"; till state inactive $u; [ "$(state com.hoop.gode.ws-again.service)" = inactive ] && echo "clean end: final"
printf '' > "$HOOP_HOME/gode/model"
systemctl --user start $u || true
till state failed $u
echo "refused: $(systemctl --user show -P ExecMainStatus $u)"
till state activating com.hoop.gode.ws-again.service
echo "again: waits"
systemctl --user stop $u
till state inactive com.hoop.gode.ws-again.service; echo "stop: stops both"
printf 'm-1\\n' > "$HOOP_HOME/gode/model"
# The wait itself, a second long.
sed -i 's/sleep 60/sleep 1/' "$HOME/.config/systemd/user/com.hoop.gode.ws-again.service"; systemctl --user daemon-reload
printf '' > "$HOOP_HOME/gode/model"; systemctl --user start $u || true
till state failed $u; printf 'm-1\\n' > "$HOOP_HOME/gode/model"
till state active $u; echo "healed"
# The watchdog, two seconds long.
sed -i 's/WatchdogSec=180/WatchdogSec=2/; s/TimeoutStopSec=45/TimeoutStopSec=1/' "$HOME/.config/systemd/user/$u"
systemctl --user daemon-reload; systemctl --user restart $u; till state active $u
three=$(pid); kill -STOP "$three"
for _ in $(seq 600); do [ "$(pid)" != "$three" ] && [ "$(pid)" != 0 ] && break; sleep 0.05; done
till state active $u; [ "$(pid)" != "$three" ] && echo "hung: started again"
s uninstall gode
till state inactive $u; ls "$HOME/.config/systemd/user" | grep -c com.hoop || true
"""


def test_a_service_lives_under_a_real_manager(folder):
    """Install, kill, clean end, refusal and healing, watchdog, uninstall: as its own user would see it (root here)."""
    town = Town(folder)
    try:
        place = town.place()
        shim.write(place.home, sys.executable)

        code, said, errors = under_systemd(
            0, place.root, "/bin/sh", "-c", LIFE, "life", place.home.parent, place.root / "state", place.cid,
            sys.executable, os.getcwd(),
        )  # fmt: skip

        assert code == 0, (said, errors)
        assert said.splitlines() == [
            "status ready",
            "killed: started again",
            "clean end: final",
            "refused: 78",
            "again: waits",
            "stop: stops both",
            "healed",
            "hung: started again",
            "0",
        ], errors
        question = place.ask("was it all for you?")
        place.start()
        place.until_answered(question)
    finally:
        town.close()


def hardening():
    """Return the lines of the unit that wall the service in."""
    unit = systemd.unit(Service("gode", Path("/h/gode"), ("all",), {"PATH": "/bin"}))
    return unit[unit.index("NoNewPrivileges=") : unit.index("[Install]")]


def test_the_hardening_holds_for_a_plain_user_and_leaves_executors_what_they_need(folder):
    """Namespaces with a /proc of their own are what codex's sandbox is made of."""
    home, units = folder / "home", folder / "home" / ".config" / "systemd" / "user"
    units.mkdir(parents=True)
    script = folder / "script"
    script.write_text(
        "touch /usr/planted 2>/dev/null && echo /usr is writable\n"
        "grep -q 'NoNewPrivs:.1' /proc/self/status && echo no new privileges\n"
        f"touch {home}/w && echo the home is writable\n"
        "unshare --user --map-root-user --pid --fork --mount-proc true && echo namespaces work\n"
    )
    log = home / "log"
    (units / "one.service").write_text(
        f"[Service]\nType=oneshot\nExecStart=/bin/sh {script}\nStandardOutput=append:{log}\n{hardening()}"
    )
    subprocess.run(["chown", "-R", f"{NOBODY_YET}:{NOBODY_YET}", str(home)], check=True)

    code, said, errors = under_systemd(NOBODY_YET, home, "systemctl", "--user", "start", "one.service")

    assert (code, said) == (0, ""), errors
    assert log.read_text().splitlines() == ["no new privileges", "the home is writable", "namespaces work"]
