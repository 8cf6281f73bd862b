#!/usr/bin/env bash
# Removes a stage's stack except for its bucket, write queue and dead-letter queue, and prints their
# names.
# usage: remove.sh STAGE REGION
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

stage=$1 region=$2
bucket=$(node stack.js output "promlake-$stage" "$region" BucketName)
write=$(node stack.js output "promlake-$stage" "$region" WriteQueueUrl)
dead=$(node stack.js output "promlake-$stage" "$region" DeadLetterQueueUrl)
# osls also lists container images, which this stack never has, and fails without the permission for
# that.
./osls.sh remove --stage "$stage" --region "$region" || echo 'remove: osls failed; checking whether the stack is gone' >&2
node stack.js gone "promlake-$stage" "$region"
echo "remove: the bucket $bucket stays; delete it with: aws s3 rb --force s3://$bucket"
for queue in "$write" "$dead"; do
    echo "remove: the queue $queue stays; move its messages with: promlake redrive --from $queue --to URL; delete it with: aws sqs delete-queue --queue-url $queue"
done
