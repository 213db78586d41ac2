"""The git repository of a file: its name and its HEAD.

Both are read from git's files. The command `git` may not be installed, and a process every few
seconds would cost too much.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_MAX_FOLDERS: Final = 40  # above a file that are searched for its repository
# In git's settings: the section of the remote `origin`, up to the next section.
_ORIGIN: Final = re.compile(r'^\[remote "origin"\](.*?)(?=^\[|\Z)', re.MULTILINE | re.DOTALL)
_URL: Final = re.compile(r"^\s*url\s*=\s*(\S+)", re.MULTILINE)
_COMMIT: Final = re.compile(r"[0-9a-f]{40,64}")  # a hash in SHA-1 or SHA-256


@dataclass(frozen=True, slots=True)
class Repository:
    root: Path
    name: str  # "owner/name" in the URL of its origin; without an origin, the root folder's name

    def path_of(self, file: Path) -> str:
        """Return the path of a file from the root, with "/"."""
        return file.relative_to(self.root).as_posix()


@dataclass(frozen=True, slots=True)
class GitHead:
    """The checked-out branch and commit.

    If the branch differs from an earlier one, the user has switched branches. If only the commit
    differs, there was a pull, a commit or a rebase.
    """

    branch: str  # "": no branch is checked out (detached HEAD)
    commit: str  # hash; "": the branch has no commit yet, or the hash could not be read


def find_repository(file: Path) -> Repository | None:
    """Return the repository of a file; None if it is in none."""
    for folder in list(file.parents)[:_MAX_FOLDERS]:
        git = _find_git_folder(folder)
        if git is not None:
            return Repository(folder, _repository_name(git) or folder.name)
    return None


def read_head(repository: Repository) -> GitHead | None:
    """Return the current HEAD; None if it cannot be read, perhaps because git is changing it."""
    git = _find_git_folder(repository.root)
    head = _read_text(git / "HEAD").strip() if git is not None else ""
    if git is None or not head:
        return None
    if not head.startswith("ref: "):
        return GitHead("", head)
    reference = head.removeprefix("ref: ")
    return GitHead(reference.removeprefix("refs/heads/"), _read_commit(git, reference))


def _find_git_folder(folder: Path) -> Path | None:
    """Return the git directory of a work tree; None if the folder is not the root of one.

    In a linked work tree, `.git` is a file that contains the path of the git directory.
    """
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
    """Return the directory with the branches and settings that all work trees share."""
    link = _read_text(git / "commondir").strip()
    return git / link if link else git


def _repository_name(git: Path) -> str:
    origin = _ORIGIN.search(_read_text(_find_common_folder(git) / "config"))
    url = _URL.search(origin[1]) if origin else None
    return parse_repository_name(url[1]) if url else ""


def parse_repository_name(url: str) -> str:
    """Return the last two parts of a URL such as `git@host:owner/name.git`."""
    parts = re.split(r"[/:]", url.removesuffix("/").removesuffix(".git"))
    return "/".join([part for part in parts if part][-2:])


def _read_commit(git: Path, reference: str) -> str:
    """Return the commit of a reference such as `refs/heads/main`; "" if there is none."""
    common = _find_common_folder(git)
    commit_in_own_file = _read_text(common / reference).strip()
    if commit_in_own_file:
        return commit_in_own_file
    for line in _read_text(common / "packed-refs").splitlines():
        commit, _, name = line.partition(" ")
        if name == reference and _COMMIT.fullmatch(commit):
            return commit
    return ""


def _read_text(file: Path) -> str:
    """Return the text of a file; "" if the file cannot be read."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
