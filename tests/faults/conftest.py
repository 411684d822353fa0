"""One real server for each file of tests, and what is planted for a persona's executor."""

import pytest

from tests.fakes.loopback_proxy import Proxy
from tests.fakes.town import Town


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    made = Town(tmp_path_factory.mktemp("town"))
    yield made
    made.close()


@pytest.fixture
def proxy(town):
    made = Proxy(town.url)
    yield made
    made.close()


# Speaks as codex does. It waits for the file `go` beside it, with a child that has fled into a session of its own.
_WAITING = """#!/bin/sh
here=$(dirname "$0")
for old in $(cat "$here/pids" 2>/dev/null); do
    state=Z
    read -r _ _ state _ 2>/dev/null <"/proc/$old/stat"
    [ "$state" = Z ] || echo "$old" >>"$here/outlived"
done
echo $$ >>"$here/runs"
echo $$ >>"$here/pids"
cat >"$here/prompt"
if [ ! -e "$here/go" ]; then
    setsid /bin/sh -c 'echo $$ >>"$0/pids"; exec sleep 600' "$here" </dev/null >/dev/null 2>&1 &
    while [ ! -e "$here/go" ]; do sleep 0.02; done
fi
echo '{"type":"thread.started","thread_id":"0199a213-81c0-7800-8aa1-bbab2a035a53"}'
echo '{"type":"turn.started"}'
echo '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"It is done."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":2,"output_tokens":3}}'
"""


class Waiting:
    """An executor that works until it is told to go on."""

    def __init__(self, folder):
        folder.mkdir()
        self.folder, self.path = folder, folder / "executor"
        self.path.write_text(_WAITING)
        self.path.chmod(0o755)

    def _lines(self, name):
        file = self.folder / name
        return file.read_text().split() if file.exists() else []

    @property
    def runs(self):
        return len(self._lines("runs"))

    @property
    def pids(self):
        return [int(one) for one in self._lines("pids")]

    @property
    def outlived(self):
        return self._lines("outlived")

    def go(self):
        (self.folder / "go").touch()


@pytest.fixture
def waiting(tmp_path):
    return Waiting(tmp_path / "executor-of-a-test")
