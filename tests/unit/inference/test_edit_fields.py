"""The fields that only edits have: their limits, and the exclusion of files by their paths."""

from dataclasses import replace
from typing import Any

import pytest

from caret.contracts.policy import Mode, Tier
from inference.completion.edit import Diagnostic, DiagnosticSeverity, RecentEdit
from inference.errors import BadRequest
from inference.gateway.admit import admit
from inference.gateway.receive import (
    MAX_DIAGNOSTIC_CHARS,
    MAX_DIAGNOSTICS,
    MAX_LINE,
    MAX_NAME_CHARS,
    MAX_RECENT_EDITS,
    MAX_RECENT_EDITS_CHARS,
    receive,
)
from tests.fakes.pools import make_admission, make_pool
from tests.fakes.requests import make_arrival, make_request, make_trace
from tests.fakes.tenants import make_policy, make_principal

SECRET = "hunter2"
EDIT = RecentEdit("b.py", start_line=1, removed="", added="")
DIAGNOSTIC = Diagnostic(line=1, severity=DiagnosticSeverity.ERROR, message="")
_POOL = make_pool(tier=Tier.QUALITY)
# A pool whose model can propose edits.
EDIT_POOL = replace(_POOL, prompt_options=replace(_POOL.prompt_options, edit_format="zeta"))


def _rejection(**fields: Any) -> BadRequest:
    """Return the error for a request with these fields, which is for an edit by default."""
    with pytest.raises(BadRequest) as rejected:
        receive(make_arrival(**{"mode": "edit", **fields}))
    return rejected.value


def test_an_edit_needs_neither_recent_edits_nor_diagnostics() -> None:
    request = receive(make_arrival(mode="edit"))

    assert (request.recent_edits, request.diagnostics) == ((), ())
    assert request.tier is Tier.QUALITY


def test_fields_within_the_limits_are_accepted() -> None:
    max_added_chars = MAX_RECENT_EDITS_CHARS // MAX_RECENT_EDITS - len(EDIT.path)
    edits = (replace(EDIT, added="x" * max_added_chars),) * MAX_RECENT_EDITS
    message = "x" * MAX_DIAGNOSTIC_CHARS
    diagnostics = (replace(DIAGNOSTIC, line=MAX_LINE, message=message),) * MAX_DIAGNOSTICS

    request = receive(make_arrival(mode="edit", recent_edits=edits, diagnostics=diagnostics))

    assert (request.recent_edits, request.diagnostics) == (edits, diagnostics)


@pytest.mark.parametrize("mode", [mode for mode in Mode if mode not in (Mode.EDIT, Mode.CHAT)])
@pytest.mark.parametrize(
    ("fields", "name"),
    [({"recent_edits": (EDIT,)}, "recent_edits"), ({"diagnostics": (DIAGNOSTIC,)}, "diagnostics")],
)
def test_modes_other_than_edit_and_chat_reject_recent_edits_and_diagnostics(
    mode: Mode, fields: dict[str, Any], name: str
) -> None:
    error = _rejection(mode=mode.value, **fields)

    assert (error.code, error.param) == ("invalid_field", name)
    assert name in error.message


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"recent_edits": (EDIT,) * (MAX_RECENT_EDITS + 1)}, "recent_edits"),
        (
            {"recent_edits": (replace(EDIT, removed=SECRET * MAX_RECENT_EDITS_CHARS),)},
            "recent_edits",
        ),
        (
            {"recent_edits": (EDIT, replace(EDIT, path=SECRET * MAX_NAME_CHARS))},
            "recent_edits[1].path",
        ),
        ({"diagnostics": (DIAGNOSTIC,) * (MAX_DIAGNOSTICS + 1)}, "diagnostics"),
        (
            {"diagnostics": (replace(DIAGNOSTIC, message="x" * (MAX_DIAGNOSTIC_CHARS + 1)),)},
            "diagnostics[0].message",
        ),
    ],
)
def test_the_error_for_a_field_over_its_limit_names_it_but_does_not_quote_it(
    fields: dict[str, Any], name: str
) -> None:
    error = _rejection(**fields)

    assert (error.code, error.http_status) == ("too_large", 413)
    assert error.message.startswith(name)
    assert SECRET not in error.message


@pytest.mark.parametrize("line", [-1, MAX_LINE + 1])
@pytest.mark.parametrize("name", ["recent_edits[0].start_line", "diagnostics[0].line"])
def test_the_error_for_an_impossible_line_names_the_field(line: int, name: str) -> None:
    if name.startswith("recent_edits"):
        error = _rejection(recent_edits=(replace(EDIT, start_line=line),))
    else:
        error = _rejection(diagnostics=(replace(DIAGNOSTIC, line=line),))

    assert (error.code, error.param) == ("invalid_field", name)


async def test_recent_edits_of_excluded_paths_do_not_reach_the_prompt() -> None:
    policy = make_policy(content_exclusion={"*": ("secrets/**",)})
    edits = (replace(EDIT, path="secrets/a.py"), EDIT, replace(EDIT, path="SECRETS\\b.py"))
    request = make_request(mode=Mode.EDIT, recent_edits=edits)
    admission = make_admission(make_pool(), EDIT_POOL)

    async with admit(admission, make_principal(policy=policy), request, make_trace()) as admitted:
        assert admitted.request.recent_edits == (EDIT,)


async def test_recent_edits_without_a_path_are_dropped_if_the_policy_requires_paths() -> None:
    request = make_request(mode=Mode.EDIT, recent_edits=(replace(EDIT, path=""), EDIT))
    principal = make_principal(policy=make_policy(requires_path=True))
    admission = make_admission(make_pool(), EDIT_POOL)

    async with admit(admission, principal, request, make_trace()) as admitted:
        assert admitted.request.recent_edits == (EDIT,)
