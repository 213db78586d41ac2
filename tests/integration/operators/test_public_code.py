"""Operators build, start and stop indexes of public code.

A real gateway loads the index that is in use, and compares completions with it.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from caret.contracts.public_code import (
    PUBLIC_CODE,
    PUBLIC_CODE_LOG,
    PUBLIC_CODE_VERSION,
    SCHEMA,
    IndexStatus,
    PublicCodeIndexChange,
    encode_index_change,
    index_file,
    repositories_folder,
)
from tenants.base.operator_roles import OperatorRole
from tenants.base.redis_connection import connect_to_redis
from tenants.fleet import public_code
from tenants.fleet.public_code import build_requested_index, read_public_code_state
from tests.integration.operators.browsers import Browser, signed_in, with_recent_step_up
from tests.integration.operators.gateways import Gateway

CAPABILITY = 'caret_gateway_capability{capability="public_code_filter"}'
INDEX = {"name": "linux", "folder": "kernels", "reason": "Ticket 4711"}


@pytest.fixture(autouse=True)
def sources() -> Iterator[Path]:
    """Yield a folder with code to index. After the test, delete the folder and all indexes."""
    folder = repositories_folder(settings.PUBLIC_CODE_FOLDER) / "kernels"
    folder.mkdir(parents=True)
    (folder / "main.c").write_text("".join(f"int value_{n} = {n} * {n};\n" for n in range(100)))
    yield folder
    shutil.rmtree(settings.PUBLIC_CODE_FOLDER)
    connection = connect_to_redis()
    connection.delete(PUBLIC_CODE, PUBLIC_CODE_LOG)
    connection.incr(PUBLIC_CODE_VERSION)


def _post(action: str, **form: str) -> Any:
    return _post_as(with_recent_step_up(), action, form)


def _post_as(browser: Browser, action: str, form: dict[str, str]) -> Any:
    return browser.client.post(f"/operators/public-code/{action}", form)


def _page() -> str:
    content: bytes = signed_in().client.get("/operators/public-code").content
    return content.decode()


def _state_of(name: str) -> tuple[IndexStatus, bool]:
    """Return the status of an index, and whether it is in use."""
    index = read_public_code_state(connect_to_redis()).records[name].index
    return index.status, index.is_running


def test_gateways_follow_an_index_that_is_built_started_and_stopped(gateway: Gateway) -> None:
    gateway.wait_for_metric(f"{CAPABILITY} 0.0")

    _post("create", **INDEX)
    assert _state_of("linux") == (IndexStatus.BUILDING, False)
    build_requested_index(connect_to_redis())
    assert _state_of("linux") == (IndexStatus.READY, False)
    assert index_file(settings.PUBLIC_CODE_FOLDER, "linux").exists()
    _post("start", name="linux", reason="Begin")
    gateway.wait_for_metric(f"{CAPABILITY} 1.0")
    assert "in use" in _page()
    _post("stop", name="linux", reason="Over")

    gateway.wait_for_metric(f"{CAPABILITY} 0.0")
    latest = read_public_code_state(connect_to_redis()).latest
    assert [change.index.reason for change in latest][:2] == ["Over", "Begin"]


def test_a_failed_build_shows_its_reason(sources: Path) -> None:
    _post("create", **INDEX)
    shutil.rmtree(sources)

    build_requested_index(connect_to_redis())

    assert _state_of("linux") == (IndexStatus.FAILED, False)
    assert "is not a folder" in _page()
    assert _post("start", name="linux", reason="x").status_code == 400


def test_an_index_with_an_invalid_time_is_ignored() -> None:
    index = PublicCodeIndexChange(
        schema=SCHEMA,
        name="linux",
        folder="kernels",
        status=IndexStatus.READY,
        is_running=False,
        num_files=1,
        num_hashes=1,
        error="",
        operator="ola",
        reason="Ticket 4711",
        at_ms=10**18,  # after the year 9999, so no `datetime` can represent it
    )
    connect_to_redis().hset(PUBLIC_CODE, "linux", encode_index_change(index))

    assert read_public_code_state(connect_to_redis()).records == {}
    assert "linux" not in _page()


def test_the_result_of_a_build_does_not_replace_a_newer_request(
    sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(sources, sources.with_name("drivers"))
    browser = with_recent_step_up()
    _post_as(browser, "create", INDEX)
    run_builder = public_code._run_builder

    def run_builder_during_a_request(source: Path, file: Path) -> tuple[int, int]:
        _post_as(browser, "create", INDEX | {"folder": "drivers"})
        return run_builder(source, file)

    with monkeypatch.context() as patch:
        patch.setattr(public_code, "_run_builder", run_builder_during_a_request)
        build_requested_index(connect_to_redis())

    assert _state_of("linux") == (IndexStatus.BUILDING, False)
    build_requested_index(connect_to_redis())
    index = read_public_code_state(connect_to_redis()).records["linux"].index
    assert (index.status, index.folder) == (IndexStatus.READY, "drivers")


def test_at_most_one_index_is_in_use_and_it_cannot_be_rebuilt() -> None:
    for name in ("linux", "bsd"):
        _post("create", **(INDEX | {"name": name}))
        build_requested_index(connect_to_redis())
    _post("start", name="linux", reason="x")

    second = _post("start", name="bsd", reason="x")
    replaced = _post("create", **INDEX)

    assert (second.status_code, replaced.status_code) == (400, 400)
    assert "Stop using linux first." in second.content.decode()


@pytest.mark.parametrize(
    "changes", [{"name": "Linux Kernel"}, {"folder": "../.."}, {"folder": ""}, {"reason": ""}]
)
def test_an_invalid_index_is_refused(changes: dict[str, str]) -> None:
    assert _post("create", **(INDEX | changes)).status_code == 400
    assert read_public_code_state(connect_to_redis()).records == {}


def test_without_redis_the_page_does_not_claim_that_there_are_no_indexes() -> None:
    client = signed_in().client
    connect_to_redis.cache_clear()  # so that the next call reads the setting again
    with override_settings(REDIS_URL="unix:///nonexistent/valkey.sock"):
        page = client.get("/operators/public-code").content.decode()
    connect_to_redis.cache_clear()

    assert "Redis does not respond, so the indexes cannot be shown." in page
    assert "There are no indexes." not in page
    assert "There are no indexes." in _page()


def test_a_change_needs_step_up_the_right_role_and_a_known_action() -> None:
    without_step_up = _post_as(signed_in(), "create", INDEX)
    by_support = _post_as(with_recent_step_up(signed_in(OperatorRole.SUPPORT)), "create", INDEX)

    assert (without_step_up.status_code, by_support.status_code) == (400, 403)
    assert _post("sell").status_code == 404
