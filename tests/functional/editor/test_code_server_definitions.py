"""Requests contain definitions that VS Code's other extensions find.

The gateway is a fake that the test controls; the rest is real.
"""

from collections.abc import Iterator
from typing import Final

import pytest

from tests.functional.editor.scripted_workbench import (
    MARKS,
    TIMEOUT_S,
    ScriptedGateway,
    open_workbench,
    scripted_gateway,
)
from tests.functional.editor.workbench import Workbench
from tests.stack.waiting import wait_until

pytestmark = MARKS
_PRICES: Final = "export const RATE = 1;\nexport function priceOf(order, rate) {\n  return 1;\n}\n"
_CART: Final = 'import { priceOf } from "./prices.js";\n\n'


@pytest.fixture(scope="module")
def scripted() -> Iterator[ScriptedGateway]:
    with scripted_gateway() as scripted:
        scripted.fake.modes = ["inline"]
        scripted.fake.suggestion = ""
        yield scripted


@pytest.fixture(scope="module")
def workbench(
    scripted: ScriptedGateway, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workbench]:
    home = tmp_path_factory.mktemp("code-server")
    (home / "shop" / ".git").mkdir(parents=True)  # definitions need a repository
    files = {"prices.js": _PRICES, "cart.js": _CART}
    with open_workbench(scripted.fake.url, home, files) as opened:
        yield opened


def test_definitions_of_another_extension_are_sent(
    workbench: Workbench, scripted: ScriptedGateway
) -> None:
    workbench.open_file("cart.js")
    workbench.press_keys("Control+End")
    workbench.type_text("let total = priceOf(")

    def type_key_and_find_definition() -> bool:
        workbench.type_text("a")  # each key causes a request; a later one has the definition
        return any("definitions" in frame for frame in scripted.requests("cart.js"))

    wait_until(type_key_and_find_definition, timeout_s=TIMEOUT_S)
    (first, *_) = (frame for frame in scripted.requests("cart.js") if "definitions" in frame)
    assert first["definitions"] == [
        {"path": "prices.js", "text": "export function priceOf(order, rate) {\n"}
    ]
