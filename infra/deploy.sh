#!/usr/bin/env bash
# Deploys the package that package.sh made, checks that the stack is complete, and prints its URLs.
# usage: deploy.sh STAGE REGION ARCH [NAME=VALUE...]     as package.sh; AWS_ENDPOINT_URL replaces the endpoint of AWS
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

stage=$1 region=$2 arch=$3
shift 3
parameters=(--param "architecture=$arch")
for parameter in "$@"; do
    parameters+=(--param "$parameter")
done
./osls.sh deploy --stage "$stage" --region "$region" --package "../dist/$stage/serverless" "${parameters[@]}"
# osls reports "deployed" even if a function failed.
node stack.js whole "promlake-$stage" "$region"
