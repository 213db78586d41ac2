"""`caret-ls` with an exhausted budget, a refused key, a second editor and another branch."""

import subprocess
from pathlib import Path
from typing import Final

import pytest

from caret.contracts.policy import Tier
from caret.contracts.pricing import BudgetScope, HardBudget, SpendingLimits, TierPrices, TokenPrices
from caret.contracts.usage import CompletionRecord, OutcomeRecord
from tests.functional.editor.developer import Developer, make_developer
from tests.functional.editor.typist import open_file, type_until_suggested
from tests.functional.gateway.gateway_stack import Site, wait_until
from tests.stack.language_server import INVOKED, LanguageServer, OpenBuffer

pytestmark = pytest.mark.engine

_TIMEOUT_S: Final = 60.0
_PRICES: Final = TierPrices(prompt=1_000_000, cached_prompt=100_000, generated=4_000_000)
EXHAUSTED_BUDGET: Final = SpendingLimits(
    prices=(TokenPrices(effective_from_ms=0, tiers=dict.fromkeys(Tier, _PRICES)),),
    # Of a millionth of a currency unit: each request costs more.
    budgets=(HardBudget("b", BudgetScope.TENANT, 1),),
)
TYPED: Final = "self.path = path\n        self.m"


@pytest.fixture
def ada(site: Site, tmp_path: Path) -> Developer:
    return make_developer(site, tmp_path)


async def has_suggestion(buffer: OpenBuffer) -> bool:
    return bool(await buffer.request_items(trigger=INVOKED))


async def explain_no_suggestion(server: LanguageServer) -> str | None:
    reason: str | None = (await server.request("$/caret/explainNoSuggestion", {}))["reason"]
    return reason


@pytest.mark.deep  # long
async def test_no_suggestion_is_shown_over_budget_until_the_budget_is_raised(
    ada: Developer,
) -> None:
    ada.publish_changes(spending=EXHAUSTED_BUDGET)
    async with ada.editor() as server:
        await server.wait_for_status("ready")
        buffer = open_file(server, ada)
        buffer.type_text(TYPED)

        async def is_over() -> bool:
            return await buffer.request_items() == [] and server.statuses[-1] == "over_budget"

        assert await wait_until(is_over, timeout_s=_TIMEOUT_S)
        assert await explain_no_suggestion(server) == "over_budget"
        await ada.wait_for_records(CompletionRecord, 1)  # of the refused request
        num_before = await ada.num_records(CompletionRecord)
        assert await buffer.request_items() == []
        assert await ada.num_records(CompletionRecord) == num_before, "a request was sent"
        ada.publish_changes(spending=SpendingLimits())

        async def suggests_again() -> bool:
            return await has_suggestion(buffer)

        assert await wait_until(suggests_again, timeout_s=_TIMEOUT_S)
        await server.wait_for_status("ready")
        assert await explain_no_suggestion(server) is None


async def test_a_refused_key_is_reported_and_a_valid_one_restores_suggestions(
    ada: Developer,
) -> None:
    valid_credentials = ada.snapshot.credentials
    async with ada.editor() as server:
        await server.wait_for_status("ready")
        assert await explain_no_suggestion(server) == "not_requested"
        ada.publish_changes(credentials=())
        await server.wait_for_status("signed_out")
        buffer = open_file(server, ada)
        buffer.type_text(TYPED)
        assert await buffer.request_items() == []
        assert await explain_no_suggestion(server) == "signed_out"
        # A change of any setting leaves the status as it is.
        settings = {"caret": {"complete_in_comments": True}}
        server.notify("workspace/didChangeConfiguration", {"settings": settings})
        await buffer.request_items()
        assert server.statuses[-1] == "signed_out"
        ada.publish_changes(credentials=valid_credentials)

        async def sign_in_and_get_suggestion() -> bool:
            server.notify("$/caret/signIn", {"key": ada.key})
            return await has_suggestion(buffer)

        assert await wait_until(sign_in_and_get_suggestion, timeout_s=_TIMEOUT_S)


@pytest.mark.deep  # long
async def test_two_editors_with_the_same_file_report_their_own_outcomes(ada: Developer) -> None:
    async with ada.editor() as ada_editor, ada.editor() as other_editor:
        for server in (ada_editor, other_editor):
            await server.wait_for_status("ready")
        buffers = [open_file(server, ada) for server in (ada_editor, other_editor)]
        items = [await type_until_suggested(buffer, TYPED) for buffer in buffers]
        for buffer, item in zip(buffers, items, strict=True):
            buffer.accept_item(item)

        async def are_recorded() -> bool:
            outcomes = ada.records(OutcomeRecord)
            return sum(record.event == "accepted" for record in outcomes) == 2

        assert await wait_until(are_recorded, timeout_s=_TIMEOUT_S)

    accepted = [record for record in ada.records(OutcomeRecord) if record.event == "accepted"]
    assert len({record.request_id for record in accepted}) == 2


@pytest.mark.deep  # long
async def test_switching_the_branch_discards_cached_suggestions(ada: Developer) -> None:
    folder = ada.write_file("reader.py", "").parent
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    async with ada.editor(CARET_LS_PREFETCH="no") as server:
        await server.wait_for_status("ready")
        buffer = open_file(server, ada)
        await type_until_suggested(buffer, TYPED)
        num_before = await ada.num_records(CompletionRecord)
        assert await buffer.request_items() != []
        num_after_repetition = await ada.num_records(CompletionRecord)
        git(folder, "switch", "-q", "-c", "other")

        async def is_noticed() -> bool:
            return "repository.switched" in ada.log

        assert await wait_until(is_noticed, timeout_s=_TIMEOUT_S)
        await buffer.request_items()
        await ada.wait_for_records(CompletionRecord, num_before + 1)

    assert num_after_repetition == num_before, "the first suggestion was not cached"


def git(folder: Path, *words: str) -> None:
    identity = (
        "-c",
        "user.name=Ada",
        "-c",
        "user.email=ada@example.org",
        "-c",
        "commit.gpgsign=false",
    )
    subprocess.run(("git", "-C", str(folder), *identity, *words), check=True, capture_output=True)
