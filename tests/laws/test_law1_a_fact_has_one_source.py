"""Law 1: a value lives in one file. A prompt that repeats it is a second source, and the gate refuses it."""

import pytest

from sentinel.core.gate import GateRefused, Passed
from sentinel.home import templates
from sentinel.home.examine import examine
from tests.fakes.persona_homes import make_home


@pytest.fixture
def home(tmp_path, monkeypatch):
    made = make_home(tmp_path)
    monkeypatch.setenv("HOOP_HOME", str(made.folder))
    return made


@pytest.mark.parametrize("file", ["model", "codex_bin", "codex_cwd"])
def test_a_task_that_repeats_a_value_is_refused(home, file):
    value = (home.path / file).read_text().strip()
    home.write("task.md", f"You are Gode. Remember: {value}.\n")

    verdict = examine(home.path, guarded=None)

    assert isinstance(verdict, GateRefused)
    assert [(check.check, check.what) for check in verdict.failed] == [
        ("voice", f"task.md repeats the value of {file}")
    ]


def test_a_changed_file_counts_at_the_very_next_reading(home):
    home.write("model", "m-2\n")

    verdict = examine(home.path, guarded=None)

    assert isinstance(verdict, Passed)
    assert verdict.persona.model == "m-2"


@pytest.mark.parametrize("name", templates.names())
def test_no_template_names_a_model_a_program_or_a_place(name):
    files = templates.load(name)

    assert not {"model", "server", "account", "token"} & set(files)
    assert not [one for one in files if one.endswith(("_bin", "_cwd", "_env"))]
    assert "/" not in files["task.md"].decode()
