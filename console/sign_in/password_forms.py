"""Forms that set, change or reset a password.

The views check new passwords with tenants.identity.members.password_validation.
"""

from django import forms
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from tenants.identity.members.password_validation import MAX_PASSWORD_CHARS

_SAME_PASSWORD = gettext_noop("The new password is your current one. Choose another.")


class NewPasswordForm(forms.Form):
    password = forms.CharField(
        label=_("New password"),
        help_text=_("At least 12 characters. A few unrelated words are easy to remember."),
        max_length=MAX_PASSWORD_CHARS,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password", "minlength": "12"}),
    )


class ChangePasswordForm(NewPasswordForm):
    current_password = forms.CharField(
        label=_("Current password"),
        max_length=MAX_PASSWORD_CHARS,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
    # clean_password needs the current password, so that field must come first.
    field_order = ("current_password", "password")

    def clean_password(self) -> str:
        new_password: str = self.cleaned_data["password"]
        if new_password == self.cleaned_data.get("current_password"):
            raise forms.ValidationError(gettext(_SAME_PASSWORD))
        return new_password


class ForgotPasswordForm(forms.Form):
    email = forms.EmailField(
        label=_("E-mail"),
        max_length=254,  # the longest valid e-mail address
        widget=forms.EmailInput(attrs={"autocomplete": "username", "autofocus": True}),
    )
