"""Two demonstration tenants, and generated data for them.

    tenants       the tenants, an owner, an administrator, a developer and a key, at each start
    operations    the data of a company for three months, once, on request

Actions of people go through the operations that people use, at times in the past, so that audit
logs, ledgers, receipts and certificates are genuine. Usage is generated (request_generator,
outcome_generator) and goes into the same tables as gateways' reports.
"""
