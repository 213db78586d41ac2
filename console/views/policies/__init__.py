"""Pages about policies: in force, changed, by team and user, explained.

presenters.py            name, meaning and value of each field in words
diff.py                  two policies side by side
forms.py                 converts a policy to form fields and back
override_forms.py        the same for the override of a team or user
review.py                shows the effect of a change, asks for a reason, saves
"""
