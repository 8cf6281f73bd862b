"""Messages that the flush function rejects go to the dead-letter queue, and promlake redrive returns the valid ones."""

import secrets

from stack.running import Stack
from support.programs import wait_until
from support.remote_write import series

START = 1_760_000_400_000
SECONDS = 300.0


def test_poison_and_its_neighbours(quiet: Stack) -> None:
    """An unreadable message does not block others, and stays in the dead-letter queue when these are redriven."""
    door = quiet.doors(f"redrive-{secrets.token_hex(4)}")["gateway"]
    dead, write = quiet.queue("DeadLetterQueueUrl"), quiet.queue("WriteQueueUrl")
    arn = quiet.sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    quiet.sqs.set_queue_attributes(QueueUrl=write, Attributes={"RedrivePolicy": f'{{"deadLetterTargetArn":"{arn}","maxReceiveCount":"2"}}'})
    quiet.sqs.send_message(QueueUrl=write, MessageBody="this is no request")
    assert door.write([series("neighbour", [(START, 1.0)])]).status == 204
    wait_until(lambda: door.samples("neighbour", START - 1, START + 1) != {}, "the neighbour", SECONDS)
    wait_until(lambda: quiet.waiting("DeadLetterQueueUrl") == 1, "the poison to be given up", SECONDS)

    # A valid message that was given up, as after a long failure of the bucket.
    sent = quiet.sent()
    assert door.write([series("revived", [(START, 2.0)])]).status == 204
    (good,) = quiet.sent()[len(sent) :]
    wait_until(lambda: door.samples("revived", START - 1, START + 1) != {}, "the sample", SECONDS)
    quiet.sqs.send_message(QueueUrl=dead, MessageBody=good)
    told = quiet.promlake("redrive", "--from", dead, "--dry-run")
    assert quiet.waiting("DeadLetterQueueUrl") == 2, told
    quiet.promlake("redrive", "--from", dead, "--to", write)
    wait_until(lambda: quiet.waiting("WriteQueueUrl") == 0, "the write queue to be empty", SECONDS)
    assert quiet.waiting("DeadLetterQueueUrl") == 1
    assert list(door.samples("revived", START - 1, START + 1).values()) == [[(START, 2.0)]]

    quiet.promlake("redrive", "--from", dead, "--to", write, "--discard-unreadable")
    wait_until(lambda: quiet.waiting("DeadLetterQueueUrl") == 0, "the dead-letter queue to be empty", SECONDS)
