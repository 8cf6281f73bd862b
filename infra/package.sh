#!/usr/bin/env bash
# Packages the stack without a network: dist/<stage>/cloudformation.json with the functions' zips
# beside it, and dist/<stage>/serverless for deploy.sh. Requires the zips of build.sh and
# infra/node_modules.
# usage: package.sh STAGE REGION ARCH [NAME=VALUE...]     the parameters of serverless.yml
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

stage=$1 region=$2 arch=$3
shift 3
node check.js "$stage" "$arch" "$@"
dist=$PWD/../dist
parameters=(--param "architecture=$arch")
for parameter in "$@"; do
    parameters+=(--param "$parameter")
done

mkdir -p "$dist/$stage"
exec 9>"$dist/.lock"
flock 9 # osls packages in infra/.serverless
./osls.sh package --stage "$stage" --region "$region" --package "$dist/$stage/serverless" "${parameters[@]}"
node template.js "$dist/$stage/serverless/cloudformation-template-update-stack.json" "$dist" "$arch" "$dist/$stage/cloudformation.json"
echo "package: dist/$stage/cloudformation.json"
