"""Where a workspace is, and what is refused as one."""

from pathlib import Path

import pytest

from cake_mcp import workspace as workspaces
from cake_mcp.workspace import WorkspaceError


def test_making_one_twice_keeps_what_is_there(tmp_path: Path) -> None:
    workspaces.create(tmp_path / ".cake")
    (tmp_path / ".cake" / "cake.toml").write_text('target = "sm_80"\n')
    (tmp_path / ".cake" / "rules" / "mine.json").write_text("{}")
    again = workspaces.create(tmp_path / ".cake")
    assert again.settings.target == "sm_80"
    assert (again.root / "rules" / "mine.json").exists()


def test_the_nearest_one_upwards_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CAKE_WORKSPACE", raising=False)
    workspaces.create(tmp_path / ".cake")
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert workspaces.locate(start=tmp_path / "a" / "b") == tmp_path / ".cake"


def test_one_in_a_folder_that_everyone_may_write_is_used_there_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CAKE_WORKSPACE", raising=False)
    shared = tmp_path / "shared"
    (shared / "mine").mkdir(parents=True)
    workspaces.create(shared / ".cake")
    shared.chmod(0o1777)
    assert workspaces.locate(start=shared / "mine") is None
    assert workspaces.locate(start=shared) == shared / ".cake"


def test_the_environment_names_one_and_an_argument_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAKE_WORKSPACE", str(tmp_path / "env"))
    assert workspaces.locate() == tmp_path / "env"
    assert workspaces.locate(tmp_path / "argument") == tmp_path / "argument"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("target = 80\n", "`target` has the wrong type"),
        ("traget = 'sm_80'\n", "unknown setting `traget`"),
        ("target = \n", "cake.toml"),
        ("parallel_jobs = 0\n", "between 1 and 64"),
    ],
)
def test_settings_that_mean_nothing_are_refused(tmp_path: Path, settings: str, message: str) -> None:
    workspaces.create(tmp_path)
    (tmp_path / "cake.toml").write_text(settings)
    with pytest.raises(WorkspaceError, match=message):
        workspaces.load(tmp_path)


def test_a_folder_that_cannot_be_made_is_an_error_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkspaceError, match="cannot make a workspace"):
        workspaces.create(tmp_path / "file" / ".cake")


def test_only_known_folders_are_handed_out(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no folder"):
        workspaces.create(tmp_path).folder("../elsewhere")
