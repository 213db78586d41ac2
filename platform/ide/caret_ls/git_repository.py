"""The git repository that a file is in: its name, and what is checked out. Read from its files, as
`git` may not be there and a process a second would be too dear."""

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
    name: str  # "owner/name" of its origin; without one its folder's name

    def path_of(self, file: Path) -> str:
        return file.relative_to(self.root).as_posix()


@dataclass(frozen=True, slots=True)
class GitHead:
    """Two that differ in `branch` are a switch, in `commit` alone a pull, commit or rebase."""

    branch: str  # "": none, a commit by itself
    commit: str


def repository_of(file: Path) -> Repository | None:
    """None: it is in none."""
    for folder in list(file.parents)[:_MAX_FOLDERS]:
        git = _git_folder(folder)
        if git is not None:
            return Repository(folder, _name(git) or folder.name)
    return None


def read_head(repository: Repository) -> GitHead | None:
    """None: it cannot be read, for the moment perhaps."""
    git = _git_folder(repository.root)
    head = _text(git / "HEAD").strip() if git is not None else ""
    if git is None or not head:
        return None
    if not head.startswith("ref: "):
        return GitHead("", head)
    branch = head.removeprefix("ref: ")
    return GitHead(branch.removeprefix("refs/heads/"), _commit(git, branch))


def _git_folder(folder: Path) -> Path | None:
    """Of a work tree of its own `.git` is a file that names it."""
    dot_git = folder / ".git"
    try:
        if dot_git.is_dir():
            return dot_git
    except OSError:  # a folder that is not ours to look into
        return None
    named = _text(dot_git).strip()
    if not named.startswith("gitdir: "):
        return None
    return folder / named.removeprefix("gitdir: ")


def _common(git: Path) -> Path:
    """Where the branches and settings of all work trees are."""
    named = _text(git / "commondir").strip()
    return git / named if named else git


def _name(git: Path) -> str:
    origin = _ORIGIN.search(_text(_common(git) / "config"))
    url = _URL.search(origin[1]) if origin else None
    return name_of(url[1]) if url else ""


def name_of(url: str) -> str:
    """`git@host:owner/name.git` and its kin: the last two parts."""
    parts = re.split(r"[/:]", url.removesuffix("/").removesuffix(".git"))
    return "/".join([part for part in parts if part][-2:])


def _commit(git: Path, branch: str) -> str:
    common = _common(git)
    loose = _text(common / branch).strip()
    if loose:
        return loose
    for line in _text(common / "packed-refs").splitlines():
        commit, _, name = line.partition(" ")
        if name == branch and _OBJECT.fullmatch(commit):
            return commit
    return ""


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
