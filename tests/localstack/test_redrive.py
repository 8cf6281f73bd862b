"""Messages that the flush function rejects go to the dead-letter queue, and promlake redrive returns the valid ones."""

import json
import secrets
from collections.abc import Iterator

import pytest
from stack.running import Stack
from support.programs import wait_until
from support.remote_write import series

START = 1_760_000_400_000
SECONDS = 300.0


@pytest.fixture
def hasty(quiet: Stack) -> Iterator[Stack]:
    """A message is given up when it has failed twice, and not because a busy machine takes seconds to flush it."""
    write, names = quiet.queue("WriteQueueUrl"), ["RedrivePolicy", "VisibilityTimeout"]
    before = quiet.sqs.get_queue_attributes(QueueUrl=write, AttributeNames=names)["Attributes"]
    policy = json.dumps(json.loads(before["RedrivePolicy"]) | {"maxReceiveCount": "2"})
    quiet.sqs.set_queue_attributes(QueueUrl=write, Attributes={"RedrivePolicy": policy, "VisibilityTimeout": "15"})
    yield quiet
    quiet.sqs.set_queue_attributes(QueueUrl=write, Attributes=before)


def test_poison_and_its_neighbours(hasty: Stack) -> None:
    """An unreadable message does not block others, and stays in the dead-letter queue when these are redriven."""
    door = hasty.doors(f"redrive-{secrets.token_hex(4)}")["gateway"]
    dead, write = hasty.queue("DeadLetterQueueUrl"), hasty.queue("WriteQueueUrl")
    hasty.sqs.send_message(QueueUrl=write, MessageBody="this is no request")
    assert door.write([series("neighbour", [(START, 1.0)])]).status == 204
    wait_until(lambda: door.samples("neighbour", START - 1, START + 1) != {}, "the neighbour", SECONDS)
    wait_until(lambda: hasty.waiting("DeadLetterQueueUrl") == 1, "the poison to be given up", SECONDS)

    # A valid message that was given up, as after a long failure of the bucket.
    sent = hasty.sent()
    assert door.write([series("revived", [(START, 2.0)])]).status == 204
    (good,) = hasty.sent()[len(sent) :]
    wait_until(lambda: door.samples("revived", START - 1, START + 1) != {}, "the sample", SECONDS)
    hasty.sqs.send_message(QueueUrl=dead, MessageBody=good)
    told = hasty.promlake("redrive", "--from", dead, "--dry-run")
    assert hasty.waiting("DeadLetterQueueUrl") == 2, told
    hasty.promlake("redrive", "--from", dead, "--to", write)
    wait_until(lambda: hasty.waiting("WriteQueueUrl") == 0, "the write queue to be empty", SECONDS)
    assert hasty.waiting("DeadLetterQueueUrl") == 1
    assert list(door.samples("revived", START - 1, START + 1).values()) == [[(START, 2.0)]]

    hasty.promlake("redrive", "--from", dead, "--to", write, "--discard-unreadable")
    wait_until(lambda: hasty.waiting("DeadLetterQueueUrl") == 0, "the dead-letter queue to be empty", SECONDS)
