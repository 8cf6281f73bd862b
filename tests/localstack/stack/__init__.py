"""What the tests on LocalStack share: a running stack, its functions, its queues, and a proxy that fails on purpose."""
