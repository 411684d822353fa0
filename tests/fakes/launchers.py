"""A launcher for tests of our own side: it speaks the protocol of docs/launcher.md and changes no user.

What it tells and does is read from files beside it at each call, so that a test can change its mind: `told.json` (the
answer to a probe), `exit` (an exit code that it ends with at once), `lost` (the code with which `--run` ends after the
header was read). `calls` lists the verbs, `headers` every header, one a line.
"""

import json
import sys

_LAUNCHER = """#!{python} -IS
import json, os, sys
here = os.path.dirname(os.path.abspath(__file__))
def has(name):
    try:
        with open(os.path.join(here, name)) as file:
            return file.read().strip()
    except FileNotFoundError:
        return None
def note(name, line):
    with open(os.path.join(here, name), "a") as file:
        file.write(line + "\\n")
verb = sys.argv[1]
note("calls", " ".join(sys.argv[1:]))
with open(os.path.join(here, f"environ.{{os.getpid()}}"), "w") as file:
    json.dump(dict(os.environ), file)
os.replace(file.name, os.path.join(here, "environ"))
if has(verb[2:] + ".exit") or has("exit"):
    print("the line to the other side is down", file=sys.stderr)
    sys.exit(int(has(verb[2:] + ".exit") or has("exit")))
if verb == "--probe":
    print(has("told.json"))
elif verb == "--run":
    line = b""
    while not line.endswith(b"\\n"):
        line += os.read(0, 1)
    header = json.loads(line)
    note("headers", line.decode().strip())
    if has("lost"):
        sys.exit(int(has("lost")))
    os.makedirs(os.path.join(here, "far", header["turn"], "outbox"), exist_ok=True)
    os.chdir(header["cwd"])
    os.execvpe(header["argv"][0], header["argv"], header["env"])
elif verb == "--put":
    line = sys.stdin.buffer.readline()
    name, data = json.loads(line)["name"], sys.stdin.buffer.read()
    folder = os.path.join(here, "far", sys.argv[2])
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)
    print(json.dumps({{"path": os.path.join(folder, name), "size_bytes": len(data)}}))
elif verb == "--get":
    path = os.path.join(here, "far", sys.argv[2], json.loads(sys.stdin.buffer.readline())["name"])
    if not os.path.exists(path):
        sys.exit(66)
    if os.path.isdir(path):
        print(json.dumps({{"names": os.listdir(path)}}))
    else:
        with open(path, "rb") as file:
            data = file.read()
        sys.stdout.buffer.write(json.dumps({{"size_bytes": len(data)}}).encode() + b"\\n" + data)
"""


class FakeLauncher:
    def __init__(self, folder, *, user="box", home="/home/box"):
        folder.mkdir(exist_ok=True)
        self.folder, self.path, self.user = folder, folder / "launcher", user
        self.path.write_text(_LAUNCHER.format(python=sys.executable))
        self.path.chmod(0o755)
        self.tells({"user": user, "cwd_ok": True, "home": home, "turns": str(folder / "far")})

    def tells(self, answer):
        (self.folder / "told.json").write_text(answer if isinstance(answer, str) else json.dumps(answer))

    def ends_with(self, code, verb=None):
        """Let every call, or every call of one verb, end with `code` at once; None: no more."""
        file = self.folder / (f"{verb}.exit" if verb else "exit")
        if code is None:
            file.unlink(missing_ok=True)
        else:
            file.write_text(str(code))

    def loses_runs_with(self, code):
        file = self.folder / "lost"
        if code is None:
            file.unlink(missing_ok=True)
        else:
            file.write_text(str(code))

    @property
    def calls(self):
        file = self.folder / "calls"
        return file.read_text().splitlines() if file.exists() else []

    @property
    def headers(self):
        file = self.folder / "headers"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    @property
    def environ(self):
        return json.loads((self.folder / "environ").read_text())
