"""The index contains only what the policy allows now; everything else is not indexed, or erased."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from django.utils import timezone

from caret.contracts.retrieval import RetrievalScope
from caret.contracts.snapshot import TenantStatus
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.identity.members.tenant_status import purge_cache, set_status
from tenants.models import PolicyVersion
from tenants.policy.document import write_policy
from tenants.policy.queries import find_policy
from tenants.privacy.retrieval_index import erasure
from tests.fakes.embeddings import FakeEmbeddings
from tests.integration.retrieval.index_harness import Library, code

INVOICE = code("invoice", "total")


@pytest.fixture
def kept(acme: Library) -> Library:
    """Index a file of each of two repositories."""
    acme.change_policy(retrieval=["shop", "blog"])
    acme.keep("shop/invoices.py", INVOICE)
    acme.keep("blog.py", INVOICE, scope=RetrievalScope(holder="", repository="blog"))
    assert acme.paths() == {"shop/invoices.py", "blog.py"}
    return acme


def test_without_an_opt_in_nothing_is_kept_or_even_embedded(
    acme: Library, embeddings: FakeEmbeddings
) -> None:
    acme.change_policy(retrieval=[])

    acme.keep("invoices.py", INVOICE)
    answers = acme.ask_and_take("invoice total")

    assert acme.paths() == set()
    assert answers == []
    assert embeddings.texts == []


def test_questions_from_an_excluded_file_are_not_answered(
    acme: Library, embeddings: FakeEmbeddings
) -> None:
    acme.keep("invoices.py", INVOICE)
    acme.change_policy(content_exclusion={"shop": ["secrets/**"]})
    embeddings.texts.clear()

    assert acme.ask_and_take("invoice total", path="secrets/a.py") == []
    assert embeddings.texts == []


def test_a_repository_that_no_glob_names_is_not_kept(acme: Library) -> None:
    acme.keep("invoices.py", INVOICE, scope=RetrievalScope(holder="", repository="blog"))

    assert acme.paths() == set()


def test_an_excluded_path_is_not_kept(acme: Library) -> None:
    acme.change_policy(content_exclusion={"shop": ["**/secrets/**"]})

    acme.keep("a/secrets/invoices.py", INVOICE)

    assert acme.paths() == set()


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"retrieval": []}, set()),
        ({"retrieval": ["sh*"]}, {"shop/invoices.py"}),
        ({"content_exclusion": {"*": ["shop/**"]}}, {"blog.py"}),
        ({"content_exclusion": {"blog": ["*.py"]}}, {"shop/invoices.py"}),
        ({"isolation": "strict"}, set()),
        ({"max_concurrent_completions": 9}, {"shop/invoices.py", "blog.py"}),
    ],
)
def test_a_change_of_policy_erases_what_it_no_longer_allows(
    kept: Library, changes: dict[str, Any], paths: set[str]
) -> None:
    kept.change_policy(**changes)

    assert kept.paths() == paths


def test_what_users_held_is_erased_when_isolation_ends(acme: Library) -> None:
    acme.change_policy(isolation="strict")
    acme.keep("invoices.py", INVOICE, scope=RetrievalScope(holder="ada", repository="shop"))
    held = acme.paths()

    acme.change_policy(isolation="shared")

    assert held == {"invoices.py"}
    assert acme.paths() == set()


def _suspend(library: Library) -> None:
    set_status(
        actor=library.company.platform,
        status=TenantStatus.SUSPENDED,
        reason="a test",
        now=timezone.now(),
    )


def _forget(library: Library) -> None:
    purge_cache(actor=library.company.platform, reason="a test", now=timezone.now())


@pytest.mark.parametrize("end", [_suspend, _forget])
def test_a_tenant_that_is_stopped_or_purged_keeps_nothing(
    kept: Library, end: Callable[[Library], None]
) -> None:
    end(kept)

    assert kept.paths() == set()


def test_nothing_is_kept_for_a_tenant_that_is_stopped(acme: Library) -> None:
    _suspend(acme)

    acme.keep("invoices.py", INVOICE)

    assert acme.paths() == set()


def test_what_others_keep_stays(kept: Library, globex: Library) -> None:
    globex.keep("invoices.py", INVOICE)

    kept.change_policy(retrieval=[])
    erasure.sweep(now=timezone.now())

    assert globex.paths() == {"invoices.py"}


def test_a_file_that_was_under_way_when_consent_ended_is_not_kept(acme: Library) -> None:
    class Interrupted:
        """An engine during whose work the policy changes."""

        model = acme.desk.embedder.model

        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            vectors = acme.desk.embedder.embed(texts)
            acme.change_policy(retrieval=[])
            return vectors

    slow = replace(acme, desk=replace(acme.desk, embedder=Interrupted()))

    slow.keep("invoices.py", INVOICE)

    assert acme.paths() == set()


def test_the_sweep_erases_what_no_consent_covers(acme: Library) -> None:
    acme.keep("invoices.py", INVOICE)
    _restore_policy(acme, retrieval=[])

    erasure.sweep(now=timezone.now())

    assert acme.paths() == set()


def test_what_is_there_without_consent_is_not_found(acme: Library) -> None:
    acme.keep("invoices.py", INVOICE)
    _restore_policy(acme, content_exclusion={"shop": ["invoices.py"]})

    assert acme.ask("invoice total") == []


def _restore_policy(library: Library, **changes: Any) -> None:
    """Change the policy without its effects, as a restored backup does."""
    tenant_id = library.company.tenant_id
    with tenant_scope(tenant_id):
        document = write_policy(find_policy(tenant_id=tenant_id).policy) | changes
        PolicyVersion.objects.create(
            tenant_id=tenant_id, version=99, document=document, reason="", created_at=timezone.now()
        )
