"""Runs AWS Lambda functions as processes of this machine.

`runtime_api` speaks with one process, `process` starts and ends it, `environment` keeps one alive between invocations, and `plugin` is what
LocalStack loads; only the last one imports LocalStack.
"""
