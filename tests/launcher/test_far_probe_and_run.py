"""The far side says who it is, and runs an executor as it was told: docs/launcher.md, `--probe` and `--run`."""

import json
import os
import pty
import pwd
import sys

import pytest

from tests.launcher.far_program import FAR, until

ME = pwd.getpwuid(os.geteuid())


def probed(far, **line):
    code, out, err = far.call("--probe", data=json.dumps(line).encode() + b"\n")
    assert (code, err) == (0, "")
    return json.loads(out)


# --- --probe


def test_probe_names_the_user_and_enters_the_directory_by_its_real_path(far, tmp_path):
    (tmp_path / "link").symlink_to(far.cwd)

    told = probed(far, cwd=str(tmp_path / "link"), later="ignored")

    assert (told["user"], told["cwd_ok"], told["cwd"]) == (ME.pw_name, True, os.path.realpath(far.cwd))
    assert told["turns"] == f"{told['home']}/.hoop-turns"
    assert "program" not in told


def test_probe_says_of_a_directory_that_is_none_that_it_cannot_be_entered(far):
    told = probed(far, cwd=str(far.cwd / "absent"))

    assert told["cwd_ok"] is False
    assert "cwd" not in told


@pytest.mark.parametrize(
    ("program", "path", "found"),
    [
        ("sh", "/nowhere:/bin", "/bin/sh"),
        ("sh", "/nowhere", None),
        ("/bin/sh", "", "/bin/sh"),
        ("sh", "bin:.", None),
    ],
)
def test_probe_looks_a_program_up_on_the_path_it_is_given(far, program, path, found):
    assert probed(far, cwd="/", program=program, path=path)["program"] == found


def test_home_is_the_password_databases_whatever_the_environment_says(far, tmp_path):
    far.program = FAR

    code, out, _ = far.call("--probe", env={"HOME": str(tmp_path), "PATH": "/bin"})

    assert code == 0
    assert json.loads(out)["home"] == os.path.realpath(ME.pw_dir)


def test_probe_by_hand_needs_no_line(far):
    code, out, _ = far.call("--probe")

    assert (code, json.loads(out)["cwd_ok"]) == (0, False)


# --- --run


def test_the_executor_gets_the_prompt_to_the_last_byte_and_its_output_comes_as_it_is(far):
    prompt = os.urandom(300_000) + b"\n{}\n"

    code, out, err = far.run("cat; echo two >&2; exit 3", prompt=prompt)

    assert (code, out, err) == (3, prompt, "two\n")


def test_the_environment_is_what_the_line_says_and_the_marker(far):
    code, out, _ = far.run("", argv=["env"], env={"PATH": "/usr/bin:/bin", "X": "1 ' é"})

    assert code == 0
    assert sorted(out.decode().splitlines()) == sorted(
        [f"HOOP_TURN={far.turn}", "PATH=/usr/bin:/bin", "X=1 ' é"]
    )


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("exit 0", 0),
        ("exit 1", 1),
        ("exit 254", 254),
        ("exit 255", 254),
        ("kill -9 $$", 137),
        ("kill -TERM $$", 143),
    ],
)
def test_the_code_is_the_executors_but_never_sshs_own(far, script, code):
    assert far.run(script)[0] == code


def test_arguments_meet_no_shell(far):
    argv = ["printf", "%s|", "$(id)", "a b", "", "'\"", "-n", "雪"]

    assert far.run("", argv=argv)[1].decode() == "$(id)|a b||'\"|-n|雪|"


def test_the_executor_starts_a_session_with_no_signal_held_back_and_no_file_of_ours(far):
    script = (
        "import os,signal;print(sorted(int(one) for one in os.listdir('/dev/fd')));"
        "print(signal.pthread_sigmask(signal.SIG_BLOCK, []), os.getsid(0) == os.getpid())"
    )

    reader, writer = os.pipe()
    order = far.order(argv=[sys.executable, "-ISc", script])
    code, out, _ = far.call("--run", data=order, pass_fds=(reader, writer))
    os.close(reader)
    os.close(writer)

    assert code == 0
    assert out.decode().splitlines() == ["[0, 1, 2, 3]", "set() True"], "3 is the listing's own"


def test_sigpipe_ends_the_executor_as_it_would_anywhere(far):
    assert far.run("sh -c 'kill -PIPE $$'; echo $?")[1] == b"141\n"


@pytest.mark.parametrize(
    "changed",
    [
        {"user": "nobody-of-this-name"},
        {"cwd": "/nowhere/at/all"},
        {"argv": ["no-such-program"]},
        {"argv": ["./sh"]},
        {"argv": []},
    ],
    ids=repr,
)
def test_what_is_not_right_is_refused_in_one_line_and_nothing_runs(far, changed):
    code, out, err = far.run("touch ran", **changed)

    assert (code, out) == (78, b"")
    assert err.startswith("hoop-executor: ")
    assert err.count("\n") == 1
    assert not (far.cwd / "ran").exists()


def test_a_directory_that_goes_away_after_the_probe_is_refused_at_the_run(far):
    assert probed(far, cwd=str(far.cwd))["cwd_ok"] is True
    far.cwd.rmdir()

    assert far.run("exit 0")[0] == 78


def test_the_right_user_runs(far):
    assert far.run("id -un", user=ME.pw_name)[1].decode() == f"{ME.pw_name}\n"


def test_a_prompt_that_the_executor_does_not_want_is_not_waited_for(far):
    child = far.start("--run")
    child.stdin.write(far.order("exec <&-; echo up; sleep 60"))
    child.stdout.readline()

    with pytest.raises(BrokenPipeError):
        child.stdin.write(b"x" * 1_000_000)


def test_a_turn_runs_once_at_a_time(far):
    first = far.start("--run")
    first.stdin.write(far.order("echo up; cat"))
    first.stdout.readline()

    code, _, err = far.run("exit 0")

    assert (code, "running already" in err) == (78, True)
    first.stdin.close()
    assert first.wait(10) == 0


def test_litter_is_removed_where_it_is_new_and_empty(far):
    (far.cwd / ".old").mkdir()

    far.run("mkdir .git .codex; touch .codex/kept", litter=[".git", ".codex", ".old", "..", "a/b"])

    assert sorted(one.name for one in far.cwd.iterdir()) == [".codex", ".old"]


@pytest.mark.parametrize("verb", ["--probe", "--run"])
def test_a_terminal_between_the_sides_is_refused(far, verb):
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-IS", str(far.program), verb])

    said = os.read(terminal, 4096).decode()
    assert until(
        lambda: os.waitpid(pid, os.WNOHANG | os.WUNTRACED)[0] == pid or not os.path.exists(f"/proc/{pid}")
    )
    os.close(terminal)

    assert "a terminal stands between the two sides" in said


# --- The command line


def test_other_words_are_refused_in_one_line(far):
    code, out, err = far.call("--run", "x")

    assert (code, out, err.count("\n")) == (64, b"", 1)


def test_behind_a_forced_command_the_verb_comes_from_ssh(far):
    env = {"PATH": "/bin", "SSH_ORIGINAL_COMMAND": "/usr/local/libexec/hoop-executor --probe"}

    assert far.call(env=env)[0] == 0


def test_the_program_starts_isolated_with_the_systems_python():
    assert FAR.read_text().splitlines()[0] == "#!/usr/bin/python3 -I"
