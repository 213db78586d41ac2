"""Offline verification: a customer verifies downloaded files without the installation."""

import os
from pathlib import Path

from playwright.sync_api import Page

from tests.stack.commands import manage


def download_file(page: Page, role: str, name: str, folder: Path) -> Path:
    """Download the file behind a button or a link, under its own name."""
    with page.expect_download() as download:
        page.get_by_role(role, name=name).first.click()  # type: ignore[arg-type]  # button or link
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def run_verifier(command: str, file: Path, public_keys: Path) -> str:
    """Return the output of this `manage.py` command for the file.

    `public_keys` is a file. The command gets none of the installation's settings.
    """
    environment = {"PATH": os.environ["PATH"]}
    return manage(
        command, str(file), "--public-key", str(public_keys), environment=environment
    ).stdout


def change_middle_byte(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
