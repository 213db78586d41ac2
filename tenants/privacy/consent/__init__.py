"""Consent to content capture: the tenant allows it, then each user agrees. Both can withdraw.

consent_texts.py   the texts that users agree to, by version
consent.py         computes the consent from receipts and policy (pure)
receipts.py        writes a receipt for each yes and no
queries.py         finds consents and receipts
"""
