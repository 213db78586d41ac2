"""The kernel that all tenant domains share. It imports none of them."""
