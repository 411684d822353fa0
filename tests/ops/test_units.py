"""What is written into units, and that they read back as what was meant."""

import plistlib
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sentinel.core.errors import ConfigError
from sentinel.ops import launchd, systemd
from sentinel.ops.service import Condition, Service
from tests.fakes.supervisor import command, read_unit, rules_of, words

ODD = '/home/ann b/it\'s "quoted" & <x> %n $HOME ${A} \\ ; # 小明/gode'
text = st.text(st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff"), min_size=1)


def service(home="/home/ann/.hoop/gode", cids=("c1",), *, by_sudo=False, **environment):
    return Service(
        Path(home).name, Path(home), tuple(cids), {"PATH": "/usr/bin:/bin", **environment}, by_sudo
    )


def keys_of(unit, tmp_path):
    path = tmp_path / "one.service"
    path.write_text(unit, "utf-8")
    return read_unit(path)


def test_the_arguments_are_sh_the_shim_the_home_and_the_conversations():
    assert service(cids=("c1", "c2")).arguments == (
        "/bin/sh",
        "/home/ann/.hoop/gode/launch",
        "/home/ann/.hoop/gode",
        "c1",
        "c2",
    )


def test_the_agent_holds_the_keys_of_the_specification():
    assert plistlib.loads(launchd.plist(service(HOOP_HOME="/h"))) == {
        "Label": "com.hoop.gode.ws",
        "ProgramArguments": ["/bin/sh", "/home/ann/.hoop/gode/launch", "/home/ann/.hoop/gode", "c1"],
        "EnvironmentVariables": {"PATH": "/usr/bin:/bin", "HOOP_HOME": "/h"},
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 60,
        "ExitTimeOut": 45,
        "ProcessType": "Standard",
        "Umask": 63,
        "StandardOutPath": "/home/ann/.hoop/gode/log/service.out.log",
        "StandardErrorPath": "/home/ann/.hoop/gode/log/service.err.log",
    }


def test_the_unit_holds_the_keys_of_the_specification(tmp_path):
    keys = keys_of(systemd.unit(service()), tmp_path)

    for key, value in {
        "Type": "notify",
        "NotifyAccess": "main",
        "Restart": "on-failure",
        "RestartPreventExitStatus": "78 75",
        "StartLimitIntervalSec": "0",
        "OnFailure": "com.hoop.gode.ws-again.service",
        "KillMode": "mixed",
        "UMask": "0077",
        "LimitCORE": "0",
        "NoNewPrivileges": "yes",
        "PrivateUsers": "yes",
        "ProtectSystem": "full",
    }.items():
        assert keys[key] == [value]
    assert float(keys["WatchdogSec"][0]) > 0
    assert float(keys["TimeoutStopSec"][0]) > 2 * 10  # the turn's grace, and its stop sequence


def test_what_executors_need_is_left_to_them(tmp_path):
    keys = keys_of(systemd.unit(service()), tmp_path)

    assert not keys.keys() & {
        "RestrictNamespaces",
        "SystemCallFilter",
        "ProtectKernelTunables",
        "ProtectKernelLogs",
        "ProtectProc",
        "MemoryDenyWriteExecute",
        "ProtectHome",
        "PrivateTmp",
    }


def test_where_sudo_is_needed_nothing_forbids_it_and_the_unit_says_why(tmp_path):
    unit = systemd.unit(service(by_sudo=True))

    forbidding = (
        "NoNewPrivileges",
        "PrivateUsers",
        "Protect",
        "Restrict",
        "Lock",
        "SystemCall",
        "Capability",
    )
    keys = set(keys_of(unit, tmp_path)) - {"Restart", "RestartSec", "RestartPreventExitStatus"}
    assert not [one for one in keys if one.startswith(forbidding)]
    assert "NoNewPrivileges= is absent" in unit


@given(home=text, cids=st.lists(text, min_size=1, max_size=3), value=text)
@example(home=ODD, cids=[";", "-", "$A", "%h", " "], value='a "b" %s $X \\n')
@example(home="\u2028", cids=["\\"], value="\\\\")
def test_any_home_reads_back_as_the_arguments_that_were_meant(home, cids, value):
    """An independent reading of systemd's quoting, and plistlib's own, see the same argv."""
    one = Service("gode", Path("/h") / home.replace("/", "_"), tuple(cids), {"HOOP_HOME": value})

    unit, agent = systemd.unit(one), plistlib.loads(launchd.plist(one))
    (line,) = [row for row in unit.split("\n") if row.startswith("ExecStart=")]
    (told,) = [row for row in unit.split("\n") if row.startswith("Environment=")]

    assert tuple(command(line.partition("=")[2])) == one.arguments == tuple(agent["ProgramArguments"])
    assert words(told.partition("=")[2]) == [f"HOOP_HOME={value}"]
    assert agent["EnvironmentVariables"] == {"HOOP_HOME": value}


@pytest.mark.parametrize("bad", ["\n", "\r", "\x00", "\x1b", "\x7f", "\x85", "\ud800", "\uffff"])
@pytest.mark.parametrize("render", [systemd.unit, launchd.plist])
@pytest.mark.parametrize("where", ["home", "cid", "environment"])
def test_what_no_unit_can_hold_is_refused_clearly(bad, render, where):
    value = f"a{bad}b"
    one = Service(
        "gode",
        Path("/h") / (value if where == "home" else "gode"),
        (value if where == "cid" else "c1",),
        {"HOOP_HOME": value if where == "environment" else "/h"},
    )

    with pytest.raises(ConfigError, match=f"U\\+{ord(bad):04X}"):
        render(one)


def test_a_name_that_is_no_unit_name_is_spelled_as_systemd_spells_it():
    assert systemd.unit_of("小 a") == r"com.hoop.\xe5\xb0\x8f\x20a.ws.service"


def test_a_name_that_is_too_long_for_a_unit_is_refused():
    with pytest.raises(ConfigError, match="too long"):
        systemd.unit(service("/h/" + "小" * 80))


def test_the_second_unit_waits_and_starts_the_first_and_ends_with_it(tmp_path):
    keys = keys_of(systemd.again(service()), tmp_path)

    assert keys["ExecStart"] == ["sleep 60", 'systemctl --user --no-block start "com.hoop.gode.ws.service"']
    assert keys["PartOf"] == ["com.hoop.gode.ws.service"]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here; the real stage asks for it")
@pytest.mark.parametrize("by_sudo", [False, True])
@pytest.mark.parametrize("home", ["/home/ann/.hoop/gode", ODD, "/home/ann/小明", "/h/a;b|c d"])
def test_systemd_itself_takes_the_units(tmp_path, home, by_sudo):
    manager = systemd.Systemd(tmp_path, environment={})
    files = manager.files(service(home, ("c1", ";", "$A", "%h"), by_sudo=by_sudo, HOOP_HOME=home))
    for one in files:
        one.path.write_bytes(one.data)

    done = subprocess.run(
        ["systemd-analyze", "--user", "verify", *(str(one.path) for one in files)],
        env={"PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("name", ["gode", "hardened", "sudo"])
def test_the_examples_in_launchagents_are_what_is_written_today(name):
    folder = Path(__file__).parents[2] / "launchagents"
    folder = folder if folder.is_dir() else packed_examples()
    example = Service(
        "gode", Path("/Users/ann/.hoop/gode"), ("all",), {"PATH": "/usr/bin:/bin"}, by_sudo=name == "sudo"
    )
    linux = Service("gode", Path("/home/ann/.hoop/gode"), ("all",), example.environment, name == "sudo")

    if name == "gode":
        assert (folder / "com.hoop.gode.ws.plist").read_bytes() == launchd.plist(example)
        assert (folder / "com.hoop.gode.ws-again.service").read_text("utf-8") == systemd.again(linux)
    else:
        file = "com.hoop.gode.ws.service" if name == "hardened" else "by-sudo.service"
        assert (folder / file).read_text("utf-8") == systemd.unit(linux)


def packed_examples():
    import sentinel

    return Path(sentinel.__path__[0]) / "_data" / "launchagents"


def test_the_stand_in_reads_both_kinds_alike(tmp_path):
    files = [
        *launchd.Launchd(tmp_path).files(service(ODD)),
        *systemd.Systemd(tmp_path, environment={}).files(service(ODD)),
    ]
    for one in files:
        one.path.touch(mode=0o600)
        one.path.write_bytes(one.data)

    agent, unit = rules_of(files[0].path), rules_of(files[1].path)

    assert agent.argv == unit.argv
    assert agent.env == unit.env
    assert agent.umask == unit.umask == 0o077


def test_what_launchctl_prints_is_understood():
    said = """gui/501/com.hoop.gode.ws = {
	active count = 0
	state = not running
	last exit code = 78: EX_CONFIG
	endpoints = {
		state = other
	}
}"""

    assert launchd.told_by_print(said) == Condition(True, False, "not running", None, 78)
    assert launchd.told_by_print(
        "\tstate = running\n\tpid = 7\n\tlast exit code = (never exited)\n"
    ) == Condition(True, True, "running", 7, None)
    assert launchd.told_by_print("\tstate = x\n\tjob state = spawn failed\n").detail == "spawn failed"


def test_what_systemctl_shows_is_understood():
    said = "LoadState=loaded\nActiveState=failed\nSubState=failed\nMainPID=0\nExecMainStatus=78\n"

    assert systemd.told_by_show(said + "ExecMainExitTimestampMonotonic=5\n") == Condition(
        True, False, "failed (failed)", None, 78
    )
    assert not systemd.told_by_show("LoadState=not-found\nActiveState=inactive\n").loaded
