"""The private folder of a turn goes with it; a kept answer stays."""

from sentinel.daemon import folders


def test_a_start_sweeps_what_a_killed_process_left_but_no_kept_answer(tmp_path):
    left, kept = folders.folder_of(tmp_path, "t-1"), folders.folder_of(tmp_path, "t-2")
    left.mkdir(parents=True)
    (left / "1-voice.ogg").write_bytes(b"somebody's voice")
    answer = folders.keep_answer(kept, "the body")

    folders.sweep(tmp_path)

    assert [one.name for one in kept.parent.iterdir()] == ["t-2"]
    assert answer.read_text() == "the body"
    assert (kept.stat().st_mode & 0o777, answer.stat().st_mode & 0o777) == (0o700, 0o600)


def test_a_home_without_turns_has_nothing_to_sweep(tmp_path):
    folders.sweep(tmp_path)

    assert list(tmp_path.iterdir()) == []
