"""Definitions of symbols that the editor sends: limits, content exclusion and place in a prompt."""

from itertools import takewhile
from typing import Any

import pytest

from caret.contracts.policy import Mode, TenantPolicy
from inference.completion.incoming_request import ContextFile, Definition
from inference.completion.segment import SegmentKind
from inference.errors import BadRequest
from inference.gateway.admit import admit
from inference.gateway.protocol.drafts import to_draft
from inference.gateway.protocol.frames import CompleteFrame, DefinitionFrame
from inference.gateway.receive import (
    MAX_DEFINITIONS,
    MAX_DEFINITIONS_CHARS,
    MAX_NAME_CHARS,
    receive,
)
from tests.fakes.pools import make_admission
from tests.fakes.prompts import CODE, assemble_prompt, text_of
from tests.fakes.requests import make_arrival, make_request, make_trace
from tests.fakes.tenants import make_policy, make_principal

PRICE = Definition("shop/prices.py", "def price_of(order, rate):\n")
ORDER = Definition("shop/orders.py", "class Order:\n    total: int\n")
FILES = tuple(ContextFile(f"{n}.py", f"{CODE[:3_000]}# {n}\n", n) for n in range(5))
AROUND: dict[str, Any] = {"prefix": CODE[:20_000], "suffix": CODE[:20_000], "files": FILES}


def _num_shared(one: list[int], other: list[int]) -> int:
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _rejection(**fields: Any) -> BadRequest:
    with pytest.raises(BadRequest) as rejected:
        receive(make_arrival(**fields))
    return rejected.value


def test_a_frames_definitions_reach_the_request() -> None:
    frame = CompleteFrame(id="1", prefix="a", definitions=[DefinitionFrame(PRICE.path, PRICE.text)])

    assert to_draft(frame).definitions == (PRICE,)


@pytest.mark.parametrize("mode", [mode for mode in Mode if mode not in (Mode.EDIT, Mode.CHAT)])
def test_definitions_within_the_limits_are_accepted(mode: Mode) -> None:
    text = "x" * (MAX_DEFINITIONS_CHARS // MAX_DEFINITIONS - len("a.py"))
    definitions = (Definition("a.py", text),) * MAX_DEFINITIONS

    assert receive(make_arrival(mode=mode, definitions=definitions)).definitions == definitions


@pytest.mark.parametrize(
    "definitions",
    [
        (PRICE,) * (MAX_DEFINITIONS + 1),
        (Definition("a.py", "x" * MAX_DEFINITIONS_CHARS),),
        (Definition("x" * (MAX_NAME_CHARS + 1), ""),),
    ],
)
def test_definitions_over_a_limit_are_rejected(definitions: tuple[Definition, ...]) -> None:
    rejected = _rejection(definitions=definitions)

    assert (rejected.code, rejected.http_status) == ("too_large", 413)
    assert "definitions" in rejected.message


def test_a_request_for_an_edit_rejects_definitions() -> None:
    assert _rejection(mode="edit", definitions=(PRICE,)).param == "definitions"


@pytest.mark.parametrize(
    ("policy", "path"),
    [
        (make_policy(content_exclusion={"*": ("**/.env",)}), "a/.env"),
        (make_policy(content_exclusion={"shop": ("legal/**",)}), "./legal/a.py"),
        (make_policy(requires_path=True), ""),
    ],
)
async def test_excluded_definitions_are_removed(policy: TenantPolicy, path: str) -> None:
    excluded = Definition(path, "PASSWORD=1")
    request = make_request(repository="shop", definitions=(excluded, PRICE))

    async with admit(make_admission(), make_principal(policy=policy), request, make_trace()) as (
        admitted
    ):
        assert admitted.request.definitions == (PRICE,)


def test_secrets_in_definitions_are_redacted() -> None:
    key = "AKIA" + "Z7QW5ERT2YUI9OPA"
    text = text_of(
        assemble_prompt(definitions=(Definition("b.py", f"aws_access_key_id = '{key}'\n"),))
    )

    assert "b.py" in text
    assert key not in text


def test_definitions_come_after_the_files_and_before_the_suffix() -> None:
    prompt = assemble_prompt(**AROUND, definitions=(PRICE, ORDER))

    kinds = [segment.kind for segment in prompt.segments if segment.kind is not SegmentKind.MARKERS]
    assert kinds == [
        *(SegmentKind.FILES, SegmentKind.DEFINITIONS, SegmentKind.PATH),
        *(SegmentKind.SUFFIX, SegmentKind.PREFIX),
    ]
    text = text_of(prompt)
    assert text.index(PRICE.text) < text.index(ORDER.text)


def test_a_further_definition_changes_nothing_before_it() -> None:
    before = assemble_prompt(**AROUND, definitions=(PRICE,))
    after = assemble_prompt(**AROUND, definitions=(PRICE, ORDER))

    # The number of tokens up to the end of the first definition.
    num_tokens = [segment.num_tokens for segment in before.segments]
    end = sum(num_tokens[: [s.kind for s in before.segments].index(SegmentKind.PATH)])
    assert _num_shared(before.token_ids, after.token_ids) >= end > 500
    # Both prompts fill the budget; a partial line may remain free.
    assert len(after.token_ids) <= len(before.token_ids) + 8


def test_definitions_use_a_small_part_of_the_budget() -> None:
    many = tuple(
        Definition(f"{n}.py", f"def f_{n}({', '.join(f'argument_{k}' for k in range(20))}):\n")
        for n in range(MAX_DEFINITIONS)
    )
    prompt = assemble_prompt(**AROUND, definitions=many)

    (tokens,) = (s.num_tokens for s in prompt.segments if s.kind is SegmentKind.DEFINITIONS)
    assert 100 < tokens <= 200  # at most a tenth of 2,000 tokens
    assert len(prompt.token_ids) <= 2_000


def test_definitions_of_files_in_the_prompt_are_left_out() -> None:
    own = Definition("a.py", "def own():\n")
    of_open_file = Definition("b.py", "def total():\n")
    files = (ContextFile("b.py", "def total():\n    pass\n", 0),)

    prompt = assemble_prompt(path="a.py", files=files, definitions=(own, of_open_file))

    assert SegmentKind.DEFINITIONS not in [segment.kind for segment in prompt.segments]


def test_definitions_add_a_path_segment_to_a_prompt_without_other_context() -> None:
    assert SegmentKind.PATH not in [segment.kind for segment in assemble_prompt().segments]
    with_one = assemble_prompt(definitions=(PRICE,))
    assert SegmentKind.PATH in [segment.kind for segment in with_one.segments]
