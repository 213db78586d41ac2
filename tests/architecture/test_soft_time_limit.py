"""Exception handlers let Celery's soft time limit end the task.

At the soft time limit, Celery raises SoftTimeLimitExceeded, a subclass of Exception, in the task.
If a broad handler (`except Exception`) swallows it, the task continues until Celery kills its
process.
"""

import ast

import pytest

from caret.local.paths import REPOSITORY


def find_swallowed_limits(code: str) -> list[int]:
    """Return the line numbers of broad handlers that catch the limit and do not raise it again."""
    return [
        handler.lineno
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Try | ast.TryStar)
        for index, handler in enumerate(node.handlers)
        if is_broad(handler)
        and not raises_again(handler)
        and not any(map(raises_limit, node.handlers[:index]))
    ]


def is_broad(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    names = {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)}
    return bool(names & {"Exception", "BaseException"})


def raises_limit(handler: ast.ExceptHandler) -> bool:
    """Return True if the handler catches only the limit, and raises it again."""
    is_limit = handler.type is not None and ast.unparse(handler.type) == "SoftTimeLimitExceeded"
    return is_limit and raises_again(handler)


def raises_again(handler: ast.ExceptHandler) -> bool:
    """Return True if the last statement of the handler is a bare `raise`."""
    return ast.unparse(handler.body[-1]) == "raise"


def test_broad_handlers_in_tenants_do_not_swallow_the_soft_time_limit() -> None:
    lines_by_path = {
        str(path.relative_to(REPOSITORY)): lines
        for path in (REPOSITORY / "tenants").rglob("*.py")
        if (lines := find_swallowed_limits(path.read_text()))
    }

    assert lines_by_path == {}


# The handlers begin on the third line of the code that the test checks.
@pytest.mark.parametrize(
    ("handlers", "lines"),
    [
        ("except Exception:\n pass", [3]),
        ("except:\n pass", [3]),
        ("except (OSError, Exception):\n pass", [3]),
        ("except Exception:\n pass\nexcept SoftTimeLimitExceeded:\n raise", [3]),
        ("except SoftTimeLimitExceeded:\n pass\nexcept Exception:\n pass", [5]),
        ("except SoftTimeLimitExceeded:\n raise\nexcept Exception:\n pass", []),
        ("except BaseException:\n clean_up()\n raise", []),
        ("except OSError:\n pass", []),
    ],
)
def test_the_check_finds_handlers_that_swallow_the_limit(handlers: str, lines: list[int]) -> None:
    assert find_swallowed_limits(f"try:\n work()\n{handlers}") == lines
