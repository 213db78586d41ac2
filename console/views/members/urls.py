"""Addresses of members."""

from django.urls import URLPattern, path

from console.views.members import invitations, listed, member

urlpatterns: list[URLPattern] = [
    path("members", listed.members, name="members"),
    path("members/invite", invitations.invite_somebody, name="members-invite"),
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
    path("members/<uuid:user_id>", member.one, name="members-member"),
    path("members/<uuid:user_id>/role", member.role, name="members-role"),
    path("members/<uuid:user_id>/remove", member.remove, name="members-remove"),
]
