"""The git repository of a file: its name and its HEAD.

They are read from git's files: `git` may not be installed, and a process every few seconds costs
too much.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_MAX_FOLDERS: Final = 40
_ORIGIN: Final = re.compile(r'^\[remote "origin"\](.*?)(?=^\[|\Z)', re.MULTILINE | re.DOTALL)
_URL: Final = re.compile(r"^\s*url\s*=\s*(\S+)", re.MULTILINE)
_OBJECT: Final = re.compile(r"[0-9a-f]{40,64}")


@dataclass(frozen=True, slots=True)
class Repository:
    root: Path
    name: str  # "owner/name" of its origin; without an origin, the folder's name

    def path_of(self, file: Path) -> str:
        return file.relative_to(self.root).as_posix()


@dataclass(frozen=True, slots=True)
class GitHead:
    """The checked-out branch and commit.

    A different `branch` means a switch. A different `commit` alone means a pull, a commit or a
    rebase.
    """

    branch: str  # "": detached HEAD
    commit: str


def find_repository(file: Path) -> Repository | None:
    """Return the repository of a file; None if it is in none."""
    for folder in list(file.parents)[:_MAX_FOLDERS]:
        git = _find_git_folder(folder)
        if git is not None:
            return Repository(folder, _repository_name(git) or folder.name)
    return None


def read_head(repository: Repository) -> GitHead | None:
    """Return the current HEAD; None if it cannot be read, perhaps only at the moment."""
    git = _find_git_folder(repository.root)
    head = _read_text(git / "HEAD").strip() if git is not None else ""
    if git is None or not head:
        return None
    if not head.startswith("ref: "):
        return GitHead("", head)
    branch = head.removeprefix("ref: ")
    return GitHead(branch.removeprefix("refs/heads/"), _read_commit(git, branch))


def _find_git_folder(folder: Path) -> Path | None:
    """Return the git directory. In a linked work tree, `.git` is a file with its path."""
    dot_git = folder / ".git"
    try:
        if dot_git.is_dir():
            return dot_git
    except OSError:  # a folder without permission
        return None
    link = _read_text(dot_git).strip()
    if not link.startswith("gitdir: "):
        return None
    return folder / link.removeprefix("gitdir: ")


def _find_common_folder(git: Path) -> Path:
    """Return the directory with the branches and settings of all work trees."""
    link = _read_text(git / "commondir").strip()
    return git / link if link else git


def _repository_name(git: Path) -> str:
    origin = _ORIGIN.search(_read_text(_find_common_folder(git) / "config"))
    url = _URL.search(origin[1]) if origin else None
    return name_of(url[1]) if url else ""


def name_of(url: str) -> str:
    """Return the last two parts of a URL such as `git@host:owner/name.git`."""
    parts = re.split(r"[/:]", url.removesuffix("/").removesuffix(".git"))
    return "/".join([part for part in parts if part][-2:])


def _read_commit(git: Path, branch: str) -> str:
    common = _find_common_folder(git)
    loose = _read_text(common / branch).strip()
    if loose:
        return loose
    for line in _read_text(common / "packed-refs").splitlines():
        commit, _, name = line.partition(" ")
        if name == branch and _OBJECT.fullmatch(commit):
            return commit
    return ""


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
