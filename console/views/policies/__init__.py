"""Policies: view, change, overrides of teams and users, explanation.

presenters.py            titles, meanings and values of the fields
diff.py                  compares two policies
forms.py                 converts a policy to form fields and back
override_forms.py        the same for the override of a team or user
review.py                shows the effect of a change, asks for a reason, saves
"""
