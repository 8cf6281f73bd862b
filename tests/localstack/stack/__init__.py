"""Helpers of the tests on LocalStack: a running stack, its functions, its queues, and a proxy that fails on purpose."""
