"""The name and the current commit of the Git repository that contains a file."""

import subprocess
from pathlib import Path

import pytest

from caret_ls.git_repository import GitHead, find_repository, parse_repository_name, read_head


def git(folder: Path, *arguments: str) -> str:
    """Run git in the folder, and return its output."""
    config = ("-c", "user.name=A", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")
    command = ("git", "-C", str(folder), *config, *arguments)
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a repository with one commit, without an origin."""
    folder = tmp_path / "work"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "src").mkdir()
    (folder / "src" / "a.py").write_text("a = 1\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("git@example.org:acme/shop.git", "acme/shop"),
        ("https://example.org/acme/shop", "acme/shop"),
        ("https://ada:secret@example.org/acme/shop.git/", "acme/shop"),
        ("ssh://git@example.org:2222/group/acme/shop.git", "acme/shop"),
        ("../shop.git", "../shop"),
        ("", ""),
    ],
)
def test_a_repository_is_named_after_its_origin(url: str, name: str) -> None:
    assert parse_repository_name(url) == name


def test_a_file_has_a_repository_and_a_path_in_it(folder: Path) -> None:
    git(folder, "remote", "add", "other", "git@example.org:x/y.git")
    git(folder, "remote", "add", "origin", "git@example.org:acme/shop.git")

    repository = find_repository(folder / "src" / "a.py")

    assert repository is not None
    assert repository.name == "acme/shop"
    assert repository.path_of(folder / "src" / "a.py") == "src/a.py"


def test_a_repository_without_an_origin_is_named_after_its_folder(folder: Path) -> None:
    repository = find_repository(folder / "src" / "a.py")

    assert repository is not None
    assert repository.name == "work"


def test_a_file_outside_a_repository_has_none(tmp_path: Path) -> None:
    assert find_repository(tmp_path / "a.py") is None


def test_the_head_follows_commits_and_switches(folder: Path) -> None:
    repository = find_repository(folder / "src" / "a.py")
    assert repository is not None
    first = git(folder, "rev-parse", "HEAD")
    at_first = read_head(repository)
    git(folder, "commit", "-q", "--allow-empty", "-m", "second")
    after_commit = read_head(repository)
    git(folder, "switch", "-q", "-c", "feature/x")
    after_switch = read_head(repository)
    git(folder, "checkout", "-q", first)

    second = git(folder, "rev-parse", "main")
    assert at_first == GitHead("main", first)
    assert after_commit == GitHead("main", second)
    assert after_switch == GitHead("feature/x", second)
    assert read_head(repository) == GitHead("", first)


def test_packed_branches_and_other_work_trees_are_read(folder: Path, tmp_path: Path) -> None:
    git(folder, "remote", "add", "origin", "git@example.org:acme/shop.git")
    git(folder, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    git(folder, "pack-refs", "--all")
    repository = find_repository(tmp_path / "side" / "src" / "a.py")

    assert repository is not None
    assert repository.name == "acme/shop"
    assert read_head(repository) == GitHead("side", git(folder, "rev-parse", "HEAD"))


def test_a_broken_repository_has_no_head(folder: Path) -> None:
    repository = find_repository(folder / "src" / "a.py")
    assert repository is not None
    (folder / ".git" / "HEAD").unlink()

    assert read_head(repository) is None


def test_a_path_that_the_system_rejects_is_in_no_repository(tmp_path: Path) -> None:
    name_too_long = "x" * 300

    assert find_repository(tmp_path / name_too_long / "a.py") is None
