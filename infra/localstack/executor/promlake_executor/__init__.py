"""Runs AWS Lambda functions as processes of this machine.

`environment` runs one function in one execution environment, and `plugin` is what LocalStack loads; only the latter imports LocalStack.
"""
