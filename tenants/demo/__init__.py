"""Two tenants to try the product with, and a made-up past for them.

    ensure      the tenants, an administrator, a developer and a key: at each start
    fill        a quarter of what a company leaves behind, once, when it is asked for

What a person would have done is done by the operations that people use, at moments of the past, so
that trails, ledgers, receipts and certificates are genuine; what millions of keystrokes would have
left is made up (coding, outcomes) and goes into the same tables as what gateways report.
"""
