"""Definitions of symbols that the editor sends: their limits, exclusion and place in a prompt."""

from itertools import takewhile
from typing import Any

import pytest

from caret.contracts.policy import Mode, TenantPolicy
from inference.completion.incoming_request import ContextFile, Definition
from inference.completion.segment import SegmentKind
from inference.context.prompt.prompt import Prompt
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
# A request that fills the token budget without definitions.
LARGE_REQUEST: dict[str, Any] = {"prefix": CODE[:20_000], "suffix": CODE[:20_000], "files": FILES}


def _count_shared_start(token_ids: list[int], other_token_ids: list[int]) -> int:
    """Return the number of tokens with which both lists start."""
    pairs = zip(token_ids, other_token_ids, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _kinds_of(prompt: Prompt) -> list[SegmentKind]:
    return [segment.kind for segment in prompt.segments]


def _rejection(**fields: Any) -> BadRequest:
    """Return the error with which a request with these fields is rejected."""
    with pytest.raises(BadRequest) as rejected:
        receive(make_arrival(**fields))
    return rejected.value


def test_the_definitions_of_a_frame_reach_the_request() -> None:
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


def test_definitions_in_a_request_for_an_edit_are_rejected() -> None:
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
    definition = Definition("b.py", f"aws_access_key_id = '{key}'\n")

    text = text_of(assemble_prompt(definitions=(definition,)))

    assert "b.py" in text
    assert key not in text


def test_definitions_come_after_the_files_and_before_the_suffix() -> None:
    prompt = assemble_prompt(**LARGE_REQUEST, definitions=(PRICE, ORDER))

    kinds = _kinds_of(prompt)
    assert [kind for kind in kinds if kind is not SegmentKind.MARKERS] == [
        *(SegmentKind.FILES, SegmentKind.DEFINITIONS, SegmentKind.PATH),
        *(SegmentKind.SUFFIX, SegmentKind.PREFIX),
    ]
    text = text_of(prompt)
    assert text.index(PRICE.text) < text.index(ORDER.text)


def test_a_further_definition_does_not_change_the_tokens_before_it() -> None:
    with_one = assemble_prompt(**LARGE_REQUEST, definitions=(PRICE,))
    with_two = assemble_prompt(**LARGE_REQUEST, definitions=(PRICE, ORDER))

    # The path follows the definitions.
    segments_up_to_definitions = with_one.segments[: _kinds_of(with_one).index(SegmentKind.PATH)]
    num_tokens = sum(segment.num_tokens for segment in segments_up_to_definitions)
    assert num_tokens > 500  # there are files before the definitions
    assert _count_shared_start(with_one.token_ids, with_two.token_ids) >= num_tokens
    # Both prompts fill the budget, except for the tokens of a partial line.
    assert len(with_two.token_ids) <= len(with_one.token_ids) + 8


def test_definitions_use_a_small_part_of_the_budget() -> None:
    arguments = ", ".join(f"argument_{n}" for n in range(20))
    definitions = tuple(
        Definition(f"{n}.py", f"def f_{n}({arguments}):\n") for n in range(MAX_DEFINITIONS)
    )

    prompt = assemble_prompt(**LARGE_REQUEST, definitions=definitions)

    (num_definition_tokens,) = (
        segment.num_tokens for segment in prompt.segments if segment.kind is SegmentKind.DEFINITIONS
    )
    # The token budget of the tier `fast` is 2,000; a tenth of it is for definitions.
    assert 100 < num_definition_tokens <= 200
    assert len(prompt.token_ids) <= 2_000


def test_definitions_of_files_in_the_prompt_are_left_out() -> None:
    of_edited_file = Definition("a.py", "def own():\n")
    of_open_file = Definition("b.py", "def total():\n")
    files = (ContextFile("b.py", "def total():\n    pass\n", 0),)

    prompt = assemble_prompt(path="a.py", files=files, definitions=(of_edited_file, of_open_file))

    assert SegmentKind.DEFINITIONS not in _kinds_of(prompt)


def test_definitions_add_a_path_segment_to_a_prompt_without_other_context() -> None:
    without_definitions = assemble_prompt()
    with_definition = assemble_prompt(definitions=(PRICE,))

    assert SegmentKind.PATH not in _kinds_of(without_definitions)
    assert SegmentKind.PATH in _kinds_of(with_definition)
