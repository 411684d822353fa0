"""What an executor's own rules must refuse to read (spec 02 section 5, claude)."""

from sentinel.daemon.case import denied_paths


def a_home(folder, *others):
    for name in ("gode", *others):
        (folder / name).mkdir(parents=True)
        (folder / name / "token").write_text("t")
    (folder / "gode" / "turns").mkdir()
    return folder / "gode"


def test_other_homes_and_every_file_of_mine_are_denied_but_not_the_turns(tmp_path):
    home = a_home(tmp_path / "homes", "bob")

    denied = denied_paths(home, {"HOME": "/home/ann"})

    assert {str(tmp_path / "homes" / "bob"), str(home / "token"), "/home/ann/.ssh"} <= set(denied)
    assert str(home / "turns") not in denied
    assert str(home) not in denied


def test_more_homes_than_a_command_line_holds_are_denied_as_one(tmp_path):
    home = a_home(tmp_path / "homes", *(f"p{number}" for number in range(301)))

    denied = denied_paths(home, {"HOME": "/home/ann"})

    assert denied[0] == str(tmp_path / "homes")
    assert len(denied) == 4
