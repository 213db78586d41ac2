"""The editor of content exclusion. It shows the rules as a list or as YAML.

It can test whether the rules, also unsaved ones, exclude a path.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
from django import forms
from django.http import HttpRequest, HttpResponse, QueryDict
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from caret.contracts.content_exclusion import matching_globs
from console.layout.htmx import render_page
from console.layout.tabs import Tab, tabs_of
from console.sign_in.current_member import CurrentMember, member_required
from console.views.policies.form_fields import (
    AS_TYPED,
    MAX_TEXT_CHARS,
    RepositoryFileForm,
    add_refusal,
    parse_whole_number,
)
from console.views.policies.review.policy_draft import PolicyDraft, read_draft
from console.views.policies.review.review import show_review
from tenants.base.errors import InvalidValue
from tenants.base.permissions import Permission
from tenants.policy.content_exclusion_syntax import format_exclusions, parse_exclusions
from tenants.policy.document import check_exclusions
from tenants.policy.queries import PolicyVersionView, find_version, get_policy

_PAGE: Final = "console/content_exclusion/detail.html"
_TEXT_AREA_ROWS: Final = 16
_ALL: Final = "*"  # name of all repositories in the policy


class ExclusionForm(RepositoryFileForm):
    content_exclusion = forms.CharField(
        label=_("Excluded paths"),
        help_text=_(
            "For each repository, enter its name and a colon, then one pattern per line, "
            'each after a dash. For all repositories, use "*" as the name, or enter the '
            "pattern alone on its line. Comments start with # and are not saved."
        ),
        required=False,
        max_length=MAX_TEXT_CHARS,
        widget=forms.Textarea(attrs=AS_TYPED | {"class": "mono", "rows": _TEXT_AREA_ROWS}),
    )


Rule = tuple[str, str]  # a repository's name and a glob; the name "" means all repositories


@dataclass(frozen=True, slots=True)
class PathTest:
    """The result of a test of a path."""

    repository: str
    path: str
    rules: list[Rule]  # that exclude the path; empty: it is not excluded


@dataclass(frozen=True, slots=True)
class ExclusionEditor:
    """The state of the editor."""

    form: ExclusionForm
    expected_version: int  # version of the policy that the user has seen
    rules: list[Rule]  # the rules that the list shows
    is_yaml: bool = False  # True: the form shows YAML instead of the list
    path_test: PathTest | None = None  # None: no path was tested


def tabs(request: HttpRequest, member: CurrentMember) -> list[Tab]:
    pages = [("exclusion", gettext("Rules"))]
    if member.actor.has_permission(Permission.READ_USAGE) or member.actor.has_permission(
        Permission.READ_OWN_USAGE
    ):
        pages.append(("exclusion-denials", gettext("Blocked requests")))
    return tabs_of(request, pages)


@require_http_methods(["GET", "POST"])
@member_required
def exclusion(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    """Show or process the editor.

    `step` names the button that the user pressed. `add` and `remove-N` change the list of rules.
    `list` and `yaml` switch between the list and the YAML. `test` tests a path, and `review` shows
    the changes. `edit` returns from the review to the editor.
    """
    current = get_policy(actor=member.actor)
    if request.method == "GET":
        return _show_exclusion(request, member, current)
    member.actor.require(Permission.WRITE_POLICY)
    if request.POST.get("step") == "edit":
        draft = read_draft(request.POST)
        rules = _list_rules(draft.policy.content_exclusion)
        editor = ExclusionEditor(ExclusionForm(), draft.expected_version, rules)
        return _render_page(request, member, current, editor)
    return _process_form(request, member, current)


def _show_exclusion(
    request: HttpRequest, member: CurrentMember, current: PolicyVersionView
) -> HttpResponse:
    """Show the rules in force. If the URL names a path, test it."""
    exclusions = current.policy.content_exclusion
    path_form = RepositoryFileForm(request.GET)
    test_result = (
        _run_path_test(path_form, exclusions)
        if "path" in request.GET and path_form.is_valid()
        else None
    )
    initial = {"content_exclusion": format_exclusions(exclusions)}
    if test_result is not None:
        initial |= {"repository": test_result.repository, "path": test_result.path}
    editor = ExclusionEditor(
        ExclusionForm(initial=initial),
        current.version,
        _list_rules(exclusions),
        is_yaml=request.GET.get("as") == "yaml",
        path_test=test_result,
    )
    return _render_page(request, member, current, editor)


def _process_form(
    request: HttpRequest, member: CurrentMember, current: PolicyVersionView
) -> HttpResponse:
    """Process a step of the editor other than `edit`."""
    step = request.POST.get("step", "")
    expected_version = (
        parse_whole_number(request.POST.get("expected_version", "")) or current.version
    )
    is_yaml = "content_exclusion" in request.POST  # only the YAML editor has this field
    form, rules = ExclusionForm(request.POST), _read_rules(request.POST, step)
    exclusions = _read_exclusions(form, None if is_yaml else rules)
    editor = ExclusionEditor(form, expected_version, rules, is_yaml)
    if exclusions is None:
        return _render_page(request, member, current, editor, status=400)
    if step != "review":
        return _render_page(request, member, current, _apply_step(editor, exclusions, step))
    # The rules are replaced in the version that the user has seen, so that the review can tell the
    # user's changes from changes that others have saved since.
    base = current
    if expected_version != current.version:
        base = find_version(actor=member.actor, version=expected_version)
    policy = msgspec.structs.replace(base.policy, content_exclusion=exclusions)
    return show_review(request, member, PolicyDraft(policy, expected_version, origin="exclusion"))


def _apply_step(
    editor: ExclusionEditor, exclusions: dict[str, tuple[str, ...]], step: str
) -> ExclusionEditor:
    """Return the editor after a step other than `review`. Test the path if the user entered one.

    The step `test` tests even an empty path: the page then asks for a path.
    """
    form = editor.form
    path_test = (
        _run_path_test(form, exclusions) if step == "test" or form.cleaned_data["path"] else None
    )
    if step == "yaml":
        form = ExclusionForm(
            initial=form.cleaned_data | {"content_exclusion": format_exclusions(exclusions)}
        )
    if step == "list":
        editor = replace(editor, rules=_list_rules(exclusions))
    is_yaml = step == "yaml" or (editor.is_yaml and step != "list")
    return replace(editor, form=form, is_yaml=is_yaml, path_test=path_test)


def _read_rules(form_data: QueryDict, step: str) -> list[Rule]:
    """Return the rules of the list that have a glob, without rule N if the step is `remove-N`.

    N counts from 0. For the step `add`, the form data already contains the new rule.
    """
    names, globs = form_data.getlist("rule_repository"), form_data.getlist("rule_pattern")
    rules = [(name.strip(), glob.strip()) for name, glob in zip(names, globs, strict=False)]
    removed_number = (
        parse_whole_number(step.removeprefix("remove-")) if step.startswith("remove-") else None
    )
    remaining = [rule for number, rule in enumerate(rules) if number != removed_number]
    return [(name, glob) for name, glob in remaining if glob]


def _list_rules(exclusions: Mapping[str, tuple[str, ...]]) -> list[Rule]:
    """Return the rules for all repositories, then the others by repository.

    The order does not change what the rules exclude.
    """
    names = sorted(exclusions, key=lambda name: (name != _ALL, name))
    return [("" if name == _ALL else name, glob) for name in names for glob in exclusions[name]]


def _read_exclusions(
    form: ExclusionForm, rules: list[Rule] | None
) -> dict[str, tuple[str, ...]] | None:
    """Return the globs by repository, from `rules`, or from the form's YAML if `rules` is None.

    Returns None, with an error in the form, if they are invalid.
    """
    if not form.is_valid():
        return None
    try:
        if rules is None:
            exclusions = parse_exclusions(form.cleaned_data["content_exclusion"])
        else:
            exclusions = _group_rules(rules)
        check_exclusions(exclusions)
    except InvalidValue as error:
        add_refusal(form, error)
        return None
    return exclusions


def _group_rules(rules: list[Rule]) -> dict[str, tuple[str, ...]]:
    """Return the globs by repository, in their order and without repetitions."""
    globs_by_repository: dict[str, dict[str, None]] = {}
    for name, glob in rules:
        globs_by_repository.setdefault(name or _ALL, {})[glob] = None
    return {name: tuple(globs) for name, globs in globs_by_repository.items()}


def _run_path_test(form: RepositoryFileForm, exclusions: dict[str, tuple[str, ...]]) -> PathTest:
    repository, path = form.cleaned_data["repository"], form.cleaned_data["path"]
    matches = matching_globs(exclusions, repository=repository, path=path)
    return PathTest(
        repository, path, [("" if name == _ALL else name, glob) for name, glob in matches]
    )


def _render_page(
    request: HttpRequest,
    member: CurrentMember,
    current: PolicyVersionView,
    editor: ExclusionEditor,
    status: int = 200,
) -> HttpResponse:
    context: dict[str, Any] = {
        "tabs": tabs(request, member),
        "current": current,
        "form": editor.form,
        "path_test": editor.path_test,
        "rules": editor.rules,
        "example": "**/secrets/**",
        "repositories": sorted({name for name, _glob in editor.rules if name}),
        "is_yaml": editor.is_yaml,
        "expected_version": editor.expected_version,
        "may_edit": member.actor.has_permission(Permission.WRITE_POLICY),
    }
    is_list_changed = request.POST.get("step", "").partition("-")[0] in ("add", "remove")
    # The part of the page that htmx replaces.
    part = "_rules.html" if is_list_changed else "_test_result.html"
    return render_page(
        request, member, _PAGE, context, part=f"console/content_exclusion/{part}", status=status
    )
