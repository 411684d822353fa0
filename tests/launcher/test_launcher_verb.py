"""`sentinel persona launcher`: safe values or none, nothing overwritten, and what an administrator does once."""

import shutil
import stat
import subprocess
import sys

import pytest

from sentinel.cli.main import run
from sentinel.core.errors import UsageError
from sentinel.home import launcher, templates

HOSTILE = ["", "a b", "a'b", 'a"b', "a\nb", "$(id)", "a;b", "-oProxyCommand=x", "a`b", "a|b", "@FAR@", "%h"]


@pytest.mark.parametrize("value", HOSTILE, ids=ascii)
@pytest.mark.parametrize("field", ["user", "host", "far", "identity", "known_hosts"])
def test_a_value_that_is_not_safe_is_refused(field, value):
    good = {"user": "bob", "host": "mini", "port": 22, "identity": "/k", "known_hosts": "/h", "far": "/f/x"}
    is_path = field in {"identity", "known_hosts"}

    with pytest.raises(UsageError, match=f"--{field.replace('_', '-')} "):
        launcher.Ssh(**good | {field: f"/x/{value} " if is_path else value})


def test_what_is_refused_is_not_written(tmp_path, capsys):
    to = tmp_path / "near"

    assert run(["persona", "launcher", "sudo", "--user", "a;b", "--to", str(to)]) == 64
    assert "--user" in capsys.readouterr().err
    assert not to.exists()


def test_a_launcher_is_private_and_is_never_overwritten(tmp_path, capsys):
    words = ["persona", "launcher", "sudo", "--user", "bob", "--to", str(tmp_path / "near")]

    assert (run(words), run(words)) == (0, 64)

    assert stat.S_IMODE((tmp_path / "near").stat().st_mode) == 0o700
    assert (tmp_path / "near").read_bytes() == launcher.near(launcher.Sudo("bob"))
    assert capsys.readouterr().out == ""


def test_a_link_is_not_written_through(tmp_path):
    (tmp_path / "near").symlink_to(tmp_path / "elsewhere")

    assert run(["persona", "launcher", "sudo", "--user", "bob", "--to", str(tmp_path / "near")]) == 64
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("kind", ["ssh", "sudo"])
def test_without_a_file_the_launcher_is_printed_and_what_to_do_goes_beside_it(kind, capsys):
    assert run(["persona", "launcher", kind, "--user", "bob"]) == 0

    said = capsys.readouterr()
    assert said.out.startswith("#!/bin/sh\n")
    assert "@" not in said.out.replace('"$@"', "")
    assert said.err.count("install ") >= 1
    assert f"{templates.folder()}/launcher/hoop-executor" in said.err


@pytest.mark.parametrize("kind", ["ssh", "sudo"])
def test_what_is_printed_is_sh(kind, capsys, tmp_path):
    run(["persona", "launcher", kind, "--user", "bob"])
    said = capsys.readouterr()

    for text in said:
        assert subprocess.run(["/bin/sh", "-n"], input=text, text=True, check=False).returncode == 0


def test_the_rule_for_sudo_names_one_program_and_no_terminal(capsys):
    run(["persona", "launcher", "sudo", "--user", "b.ob", "--far", "/opt/far"])

    said = capsys.readouterr().err
    assert "ALL=(b.ob) NOPASSWD: /opt/far'" in said
    assert "'Defaults!/opt/far !use_pty'" in said
    assert "visudo -cf /etc/sudoers.d/hoop-b_ob.new" in said, "sudo passes over file names with a dot"


def test_the_key_may_start_the_far_side_and_nothing_else(capsys):
    run(["persona", "launcher", "ssh", "--user", "bob", "--far", "/opt/far"])

    assert 'command="/opt/far",restrict KEY' in capsys.readouterr().err


def test_the_far_side_comes_out_of_the_package_and_runs_alone(tmp_path):
    copy = tmp_path / "hoop-executor"

    assert run(["persona", "launcher", "far", "--to", str(copy)]) == 0
    assert run(["persona", "launcher", "far", "--to", str(copy)]) == 64

    assert stat.S_IMODE(copy.stat().st_mode) == 0o755
    done = subprocess.run(
        [sys.executable, "-I", copy, "--nope"], capture_output=True, check=False, env={}, cwd="/"
    )
    assert done.returncode == 64


@pytest.mark.skipif(shutil.which("visudo") is None, reason="sudo is not here; the real stage has it")
def test_sudo_itself_takes_the_rule(tmp_path, capsys):
    run(["persona", "launcher", "sudo", "--user", "bob"])
    line = next(one for one in capsys.readouterr().err.splitlines() if one.startswith("printf"))
    (tmp_path / "rule").write_text(
        subprocess.run(
            ["/bin/sh", "-c", line.split(" > ")[0]], capture_output=True, text=True, check=True
        ).stdout
    )
    (tmp_path / "rule").chmod(0o440)

    assert subprocess.run(["visudo", "-cqf", str(tmp_path / "rule")], check=False).returncode == 0
