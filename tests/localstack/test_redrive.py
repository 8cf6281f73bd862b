"""Messages that the flush function rejects go to the dead-letter queue, and its command redrive returns the valid ones."""

import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from stack.running import Stack
from support.programs import wait_until
from support.remote_write import series

START = 1_760_000_400_000
SECONDS = 300.0


def redrive(stack: Stack, **options: bool) -> dict[str, Any]:
    """Moves dead letters as an operator does, and returns the answer, with the messages by their fates."""
    answer = stack.invoke("flush", {"command": "redrive", **options})
    assert answer["error"] is None, answer
    told = json.loads(answer["payload"])
    return told | {"fates": {fate["fate"]: fate["messages"] for fate in told["fates"]}}


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
    told = redrive(hasty, dry_run=True)
    assert (told["fates"], told["left"], told["complete"]) == ({"readable": 1, "unreadable, stays": 1}, 2, True)
    told = redrive(hasty)
    assert (told["fates"], told["left"]) == ({"moved": 1, "unreadable, stays": 1}, 1)
    wait_until(lambda: hasty.waiting("WriteQueueUrl") == 0, "the write queue to be empty", SECONDS)
    assert hasty.waiting("DeadLetterQueueUrl") == 1
    assert list(door.samples("revived", START - 1, START + 1).values()) == [[(START, 2.0)]]

    assert redrive(hasty, discard_unreadable=True)["fates"] == {"unreadable, discarded": 1}
    assert hasty.waiting("DeadLetterQueueUrl") == 0
