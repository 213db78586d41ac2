"""Two demonstration tenants, and generated data for them.

    tenants       the tenants, an owner, an administrator, a developer and a key, at each start
    operations    the data of a company for three months, once, on request

Actions of people call the same operations as actions in the console, with times in the past. So
audit logs, ledgers, receipts and certificates are genuine. Usage is generated (request_generator,
outcome_generator) and is stored in the same tables as the reports of gateways.
"""
