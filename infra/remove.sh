#!/usr/bin/env bash
# Removes a stage's stack except for its bucket, write queue and dead-letter queue, and prints the
# names of those that stayed.
# usage: remove.sh STAGE REGION
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

stage=$1 region=$2
id=$(node stack.js id "promlake-$stage" "$region")
# osls also lists container images, which this stack never has, and fails without the permission for
# that.
./osls.sh remove --stage "$stage" --region "$region" || echo 'remove: osls failed; checking whether the stack is gone' >&2
node stack.js gone "$id" "$region"
