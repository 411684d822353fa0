"""The runbook of the sandboxed persona, command by command, with a real user, real sudo and the installed far side.

It is what an administrator would type, so it installs where the page says; the page's own end takes it all away again.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.fakes.demo_process import until
from tests.runbooks.test_commands_run import NEEDS_ROOT, House, commands_of

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

BOX = "hooprunbook"
LEFT = (Path(f"/etc/sudoers.d/hoop-{BOX}"), Path("/usr/local/libexec/hoop-executor"))
CODEX = """#!/bin/sh
cat >/dev/null
echo '{"type":"thread.started","thread_id":"01a22dc0-0000-7000-8000-000000000000"}'
echo "{\\"type\\":\\"item.completed\\",\\"item\\":{\\"id\\":\\"i\\",\\"type\\":\\"agent_message\\",\\"text\\":\\"$(id -un) was here\\"}}"
echo '{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}'
"""


def take_away():
    for file in LEFT:
        file.unlink(missing_ok=True)
    subprocess.run(["userdel", "--force", "--remove", BOX], capture_output=True, check=False)


@pytest.fixture
def house(tmp_path):
    assert os.geteuid() == 0, "this needs root: it makes a user; run the real stage as root"
    assert shutil.which("sudo"), "sudo is absent: run tests/real/install.sh"
    take_away()
    programs = Path(tempfile.mkdtemp(prefix="hoop-runbook-", dir="/tmp"))
    programs.chmod(0o755)
    (programs / "codex").write_text(CODEX)
    (programs / "codex").chmod(0o755)
    made = House(tmp_path, empty=True)
    (tmp_path / "home").chmod(0o700)
    (tmp_path / "home" / ".hoop").mkdir(mode=0o700)
    made.values |= {
        "PATH": "PATH",  # the name of a variable, no value of ours
        "BOX": BOX,
        "LAUNCHER": f"{tmp_path}/launcher",
        "ONCE-FILE": f"{tmp_path}/once",
        "BIN-FOLDER": str(programs),
        "ENV-FILE": f"{tmp_path}/env",
        "CWD": f"/home/{BOX}/room",
    }
    yield made
    made.close()
    take_away()
    shutil.rmtree(programs)


def test_the_page_makes_a_walled_in_persona_that_answers_and_takes_it_away(house):
    assert {"sandboxed-persona.md"} == NEEDS_ROOT
    answered = False
    for script in commands_of("sandboxed-persona.md"):
        if script.startswith("# Ctrl-C"):
            until(lambda: len(house.messages()) == 2, lambda: str(house.messages()))
            answered = [one["text"] for one in house.messages()][-1] == f"{BOX} was here"
        house.run(script)

    assert answered
    assert not any(file.exists() for file in LEFT)
    with pytest.raises(KeyError):
        pwd.getpwnam(BOX)
