"""The retrieval index contains only files that the policy allows. Other files are erased."""

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
from tenants.policy.document import serialize_policy
from tenants.policy.queries import find_policy_in_force
from tenants.privacy.retrieval_index import erasure
from tests.fakes.embeddings import FakeEmbeddings
from tests.integration.retrieval.index_harness import TenantIndex, make_code

INVOICE = make_code("invoice", "total")


@pytest.fixture
def two_repositories(acme: TenantIndex) -> TenantIndex:
    """Index a file of each of two repositories."""
    acme.change_policy(retrieval=["shop", "blog"])
    acme.index_file("shop/invoices.py", INVOICE)
    acme.index_file("blog.py", INVOICE, scope=RetrievalScope(holder="", repository="blog"))
    assert acme.indexed_paths() == {"shop/invoices.py", "blog.py"}
    return acme


def test_without_an_opt_in_nothing_is_indexed_or_embedded(
    acme: TenantIndex, embeddings: FakeEmbeddings
) -> None:
    acme.change_policy(retrieval=[])

    acme.index_file("invoices.py", INVOICE)
    results = acme.get_responses("invoice total")

    assert acme.indexed_paths() == set()
    assert results == []
    assert embeddings.texts == []


def test_queries_from_an_excluded_file_get_no_response(
    acme: TenantIndex, embeddings: FakeEmbeddings
) -> None:
    acme.index_file("invoices.py", INVOICE)
    acme.change_policy(content_exclusion={"shop": ["secrets/**"]})
    embeddings.texts.clear()

    assert acme.get_responses("invoice total", path="secrets/a.py") == []
    assert embeddings.texts == []


def test_a_repository_outside_of_the_opt_in_is_not_indexed(acme: TenantIndex) -> None:
    acme.index_file("invoices.py", INVOICE, scope=RetrievalScope(holder="", repository="blog"))

    assert acme.indexed_paths() == set()


def test_an_excluded_path_is_not_indexed(acme: TenantIndex) -> None:
    acme.change_policy(content_exclusion={"shop": ["**/secrets/**"]})

    acme.index_file("a/secrets/invoices.py", INVOICE)

    assert acme.indexed_paths() == set()


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"retrieval": []}, set()),
        ({"retrieval": ["sh*"]}, {"shop/invoices.py"}),
        ({"content_exclusion": {"*": ["shop/**"]}}, {"blog.py"}),
        ({"content_exclusion": {"blog": ["*.py"]}}, {"shop/invoices.py"}),
        ({"isolation": "strict"}, set()),  # without an index of the whole tenant
        ({"max_concurrent_completions": 9}, {"shop/invoices.py", "blog.py"}),
    ],
)
def test_a_policy_change_erases_files_that_it_no_longer_allows(
    two_repositories: TenantIndex, changes: dict[str, Any], paths: set[str]
) -> None:
    two_repositories.change_policy(**changes)

    assert two_repositories.indexed_paths() == paths


def test_files_of_single_users_are_erased_when_strict_isolation_ends(acme: TenantIndex) -> None:
    acme.change_policy(isolation="strict")
    acme.index_file("invoices.py", INVOICE, scope=RetrievalScope(holder="ada", repository="shop"))
    paths_before = acme.indexed_paths()

    acme.change_policy(isolation="shared")

    assert paths_before == {"invoices.py"}
    assert acme.indexed_paths() == set()


def _suspend(index: TenantIndex) -> None:
    set_status(
        actor=index.company.platform,
        status=TenantStatus.SUSPENDED,
        reason="a test",
        now=timezone.now(),
    )


def _purge(index: TenantIndex) -> None:
    purge_cache(actor=index.company.platform, reason="a test", now=timezone.now())


@pytest.mark.parametrize("erase_by", [_suspend, _purge])
def test_suspending_a_tenant_or_purging_its_cache_erases_the_index(
    two_repositories: TenantIndex, erase_by: Callable[[TenantIndex], None]
) -> None:
    erase_by(two_repositories)

    assert two_repositories.indexed_paths() == set()


def test_no_file_is_indexed_for_a_suspended_tenant(acme: TenantIndex) -> None:
    _suspend(acme)

    acme.index_file("invoices.py", INVOICE)

    assert acme.indexed_paths() == set()


def test_erasing_one_tenants_index_keeps_anothers(
    two_repositories: TenantIndex, globex: TenantIndex
) -> None:
    globex.index_file("invoices.py", INVOICE)

    two_repositories.change_policy(retrieval=[])
    erasure.clean_up_index(now=timezone.now())

    assert globex.indexed_paths() == {"invoices.py"}


def test_a_file_being_embedded_when_the_opt_in_ends_is_not_indexed(
    acme: TenantIndex, embeddings: FakeEmbeddings
) -> None:
    class PolicyChangingEngine:
        """An engine that embeds texts. Meanwhile, the tenant ends the opt-in."""

        model = acme.context.embedder.model

        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            vectors = acme.context.embedder.embed(texts)
            acme.change_policy(retrieval=[])
            return vectors

    interrupted = replace(acme, context=replace(acme.context, embedder=PolicyChangingEngine()))

    interrupted.index_file("invoices.py", INVOICE)

    assert embeddings.texts != []
    assert acme.indexed_paths() == set()


def test_the_clean_up_erases_files_that_the_policy_does_not_allow(acme: TenantIndex) -> None:
    acme.index_file("invoices.py", INVOICE)
    _restore_policy(acme, retrieval=[])

    erasure.clean_up_index(now=timezone.now())

    assert acme.indexed_paths() == set()


def test_indexed_files_that_the_policy_does_not_allow_are_not_found(acme: TenantIndex) -> None:
    acme.index_file("invoices.py", INVOICE)
    _restore_policy(acme, content_exclusion={"shop": ["invoices.py"]})

    assert acme.find_snippets("invoice total") == []


def _restore_policy(index: TenantIndex, **changes: Any) -> None:
    """Change the policy without its effects, as a restored backup does."""
    tenant_id = index.company.tenant_id
    with tenant_scope(tenant_id):
        document = serialize_policy(find_policy_in_force(tenant_id=tenant_id).policy) | changes
        PolicyVersion.objects.create(
            tenant_id=tenant_id,
            version=99,  # higher than that of every other version
            document=document,
            reason="",
            created_at=timezone.now(),
        )
