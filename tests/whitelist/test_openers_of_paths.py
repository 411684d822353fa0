"""Who opens paths: every module of the package that does is named here, with the reason why no caller chose the path.

`sentinel.whitelist` is the only opener of a caller's path. A new module that opens, lists or removes by path turns this red:
either it takes its descriptors from the whitelist, or it gets a line here that says whose path it is. The law sees calls
by their names; it cannot see a path go from a caller into one of the modules below.
"""

import ast
from pathlib import Path

import sentinel

PACKAGE = Path(sentinel.__file__).parent
OPENING = frozenset(
    {"open", "fdopen", "FileIO", "read_bytes", "read_text", "write_bytes", "write_text", "readlink", "rmtree"}
    | {"copy2", "copyfile", "copytree", "copyfileobj", "mkstemp", "NamedTemporaryFile"}
    | {"scandir", "listdir", "iterdir", "walk", "fwalk", "glob", "rglob"}
)
OWN = "a file of the program's own, at a path it made"
OPERATOR = "a path that the operator typed on this machine's command line"

OPENERS = {
    "app/demo.py": OWN,
    "app/imports.py": OWN,
    "app/service.py": "the program that a home names, and unit files at the paths where units live",
    "bridge/fetch.py": "media of a turn, under names the program makes, with O_NOFOLLOW in the turn's own folder",
    "bridge/outbox.py": "whether the outbox of the turn's own folder holds anything; its files are opened by the whitelist",
    "cli/logs.py": OWN,
    "cli/main.py": "the null device",
    "cli/mentions.py": OPERATOR,
    "cli/persona.py": "lists the folder of homes",
    "cli/status.py": "lists the folder of homes",
    "cli/usage.py": "lists the folder of homes",
    "cli/wake.py": OPERATOR,
    "daemon/case.py": "lists the folder of homes and a home, to know what to wall off",
    "daemon/control.py": "the home's folder, for its socket",
    "daemon/folders.py": "the folders of turns in a home",
    "daemon/lock.py": "the number of the process that holds an account",
    "home/archive.py": OPERATOR,
    "home/build.py": OPERATOR,
    "home/facts.py": "lists a home by the descriptor that the whitelist opened",
    "home/far_side.py": "media that the bridge fetched into the folder of the turn",
    "home/launcher.py": "the launcher shipped in the package, and a fresh file where the operator wants it",
    "home/refusal.py": "the record of the last refusal, in a home",
    "home/remove.py": "a home that was moved aside under a name of the program's own",
    "home/templates.py": "templates shipped in the package",
    "home/write.py": "a fresh file in a home, with O_EXCL and O_NOFOLLOW",
    "proctree.py": "the kernel's own files on processes",
    "server/backup.py": OPERATOR,
    "server/calls.py": "an upload under the name of its hash",
    "server/media.py": "uploads under the names of their hashes",
    "server/page.py": "the page's files, from a fixed table of names",
    "server/store.py": "the folder and database of the server",
    "store/database.py": "a home's database, and the kernel's table of mounts",
    "whitelist/beneath.py": "the opener itself: roots, and one step at a time beneath them",
    "whitelist/opened.py": "lists by descriptor",
    "whitelist/step.py": "opens a name in an open directory, through no link",
}
OTHER_OPENERS = {
    "cli/bridge.py": "reads standard input",
    "cli/say.py": "reads standard input",
    "daemon/sentinel.py": "opens the control socket's server, no file",
    "server/ws.py": "opens a line to a page, no file",
}


def openings(tree):
    """Return the names of calls in a module that open, list or remove by path."""
    called = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    names = (
        one.attr if isinstance(one, ast.Attribute) else one.id
        for one in called
        if isinstance(one, ast.Attribute | ast.Name)
    )
    return sorted(OPENING.intersection(names))


def found():
    modules = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}
    return {
        name: calls for name, path in modules.items() if (calls := openings(ast.parse(path.read_bytes())))
    }


def test_whoever_opens_a_path_is_named_with_a_reason():
    strangers = {name: calls for name, calls in found().items() if name not in OPENERS | OTHER_OPENERS}

    assert not strangers, "open through sentinel.whitelist, or say whose path it is in OPENERS"


def test_no_reason_outlives_its_module():
    assert not set(OPENERS | OTHER_OPENERS) - set(found())


def test_each_way_to_open_is_seen():
    code = "open(p); os.open(p, 0); path.open(); p.read_bytes(); os.scandir(p); shutil.rmtree(p)"

    assert openings(ast.parse(code)) == ["open", "read_bytes", "rmtree", "scandir"]


def test_only_the_whitelist_steps_beneath_a_descriptor():
    """`dir_fd` is how paths are opened without a race: whoever needs that needs the whitelist."""
    users = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.keyword) and node.arg == "dir_fd"
    }

    assert users <= {"whitelist/beneath.py", "whitelist/step.py"}
