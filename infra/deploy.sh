#!/usr/bin/env bash
# Deploys what package.sh packaged, makes sure that the stack is whole, and tells its URLs.
# usage: deploy.sh STAGE REGION ARCH [NAME=VALUE...]     as package.sh; AWS_ENDPOINT_URL leads elsewhere than to AWS
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

stage=$1 region=$2 arch=$3
shift 3
parameters=(--param "architecture=$arch")
for parameter in "$@"; do
    parameters+=(--param "$parameter")
done
./osls.sh deploy --stage "$stage" --region "$region" --package "../dist/$stage/serverless" "${parameters[@]}"
# osls says "deployed" of a stack with a function that failed, too.
node stack.js whole "promlake-$stage" "$region"
