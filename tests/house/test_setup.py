"""`make setup` on a fresh machine: what the lock file holds is all that it needs. Source: spec 07."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = "import sys; sys.modules['editables'] = None; import hatchling.build; hatchling.build.build_editable(sys.argv[1])"


def test_the_editable_install_needs_no_package_outside_the_lock_file(tmp_path: Path) -> None:
    """Without build isolation nobody fetches `editables`, which hatchling wants unless told the directories."""
    for package in ("sentinel", "adapters", "personas", "launchagents"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    (tmp_path / "README.md").touch()
    (tmp_path / "LICENSE").touch()
    shutil.copy(ROOT / "pyproject.toml", tmp_path)

    built = subprocess.run(
        [sys.executable, "-c", BUILD, str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert built.returncode == 0, built.stderr
