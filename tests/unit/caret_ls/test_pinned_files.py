"""Files that a repository pins in `.caret.toml` are sent with each request."""

import json
from pathlib import Path

import pytest

from caret_ls.frames import Frame
from caret_ls.git_repository import Repository
from caret_ls.pinned_files import PinnedFiles
from caret_ls.recent_files import MAX_FILE_CHARS
from caret_ls.session import Session
from caret_ls.settings import Settings
from tests.unit.caret_ls.provider_harness import ManualClock


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a repository with two files, `types.py` and `style.md`."""
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "types.py").write_text("class Order: ...\n")
    (root / "style.md").write_text("Names say what a value is.\n")
    return root


def _pin(root: Path, *paths: str) -> None:
    """List these paths in the repository's `.caret.toml`."""
    (root / ".caret.toml").write_text(f"pinned_files = {json.dumps(paths)}\n")


def _list_paths(root: Path, clock: ManualClock | None = None) -> list[str]:
    files = PinnedFiles(clock or ManualClock()).list(Repository(root, "shop"))
    return [file.path for file in files]


def test_the_listed_files_are_pinned(root: Path) -> None:
    _pin(root, "types.py", "style.md", "types.py")

    files = PinnedFiles(ManualClock()).list(Repository(root, "shop"))

    assert [file.path for file in files] == ["types.py", "style.md"]
    assert files[0].to_fields() == {
        "path": "types.py",
        "text": "class Order: ...\n",
        "edited_at": 0.0,
        "is_pinned": True,
    }


def test_a_repository_without_a_list_pins_nothing(root: Path) -> None:
    assert _list_paths(root) == []


@pytest.mark.parametrize(
    "text", ["pinned_files = 1", "pinned_files = [1]", "pinned_files = [", "\x00", "other = 1"]
)
def test_an_invalid_list_pins_nothing(root: Path, text: str) -> None:
    (root / ".caret.toml").write_text(text)

    assert _list_paths(root) == []


@pytest.mark.parametrize(
    "path", ["../secret.txt", "/etc/hostname", "link.txt", "folder/../../secret.txt", "a\x00b", ""]
)
def test_no_file_outside_the_repository_is_read(root: Path, path: str) -> None:
    (root.parent / "secret.txt").write_text("secret")
    (root / "link.txt").symlink_to(root.parent / "secret.txt")
    _pin(root, path)

    assert _list_paths(root) == []


def test_secret_long_and_binary_files_are_left_out(root: Path) -> None:
    (root / ".env").write_text("PASSWORD=1\n")
    (root / "long.md").write_text("x\n" * MAX_FILE_CHARS)
    (root / "picture.bin").write_bytes(b"\xff\xfe\xfa")
    _pin(root, ".env", "long.md", "picture.bin", "missing.md", "types.py")

    assert _list_paths(root) == ["types.py"]


def test_files_are_read_again_after_a_few_seconds(root: Path) -> None:
    clock = ManualClock()
    pinned_files, repository = PinnedFiles(clock), Repository(root, "shop")
    _pin(root, "types.py")
    before = pinned_files.list(repository)
    (root / "types.py").write_text("class Invoice: ...\n")

    at_once = pinned_files.list(repository)
    clock.now_s += 6  # files are cached for five seconds

    assert at_once == before
    assert pinned_files.list(repository)[0].text == "class Invoice: ...\n"


async def test_a_request_contains_each_pinned_file_once(root: Path) -> None:
    _pin(root, "types.py", "style.md")
    session = Session(Settings(), ManualClock(), lambda _status: None)
    for name in ("types.py", "other.py", "main.py"):
        session.open((root / name).as_uri(), "python", f"{name} = 'unsaved'\n")

    files = _files_in_request(session, (root / "main.py").as_uri())

    assert [(file["path"], file.get("is_pinned", False)) for file in files] == [
        ("types.py", True),
        ("style.md", True),
        ("other.py", False),
    ]
    assert files[0]["text"] == "class Order: ...\n"  # as saved, not as edited


async def test_excluded_and_current_files_are_not_pinned(root: Path) -> None:
    _pin(root, "types.py", "style.md")
    session = Session(Settings(excluded_globs=("style.md",)), ManualClock(), lambda _status: None)
    session.open((root / "types.py").as_uri(), "python", "class Order: ...\n")

    assert _files_in_request(session, (root / "types.py").as_uri()) == []


def _files_in_request(session: Session, uri: str) -> list[Frame]:
    file = session.files.get(uri)
    assert file is not None
    files: list[Frame] = session._build_context(file).to_fields()["files"]
    return files
