"""URLs of the pages of members, seats and invitations."""

from django.urls import URLPattern, path

from console.views.members import detail, invitations, seats, transfer_ownership
from console.views.members import list as list_page

urlpatterns: list[URLPattern] = [
    path("members", list_page.members, name="members"),
    path("members/seats", seats.seats, name="members-seats"),
    path("members/invite", invitations.invite_members, name="members-invite"),
    path("members/invitations", invitations.invitations, name="members-invitations"),
    path(
        "members/invitations/<uuid:invitation_id>/send",
        invitations.send_again,
        name="members-invitation-send",
    ),
    path(
        "members/invitations/<uuid:invitation_id>/revoke",
        invitations.revoke,
        name="members-invitation-revoke",
    ),
    path("members/<uuid:user_id>", detail.show_member, name="members-member"),
    path("members/<uuid:user_id>/role", detail.edit_role, name="members-role"),
    path("members/<uuid:user_id>/remove", detail.remove, name="members-remove"),
    path("members/<uuid:user_id>/transfer", transfer_ownership.transfer, name="members-transfer"),
]
