#!/usr/bin/env bash
# Packages the stack without a network: dist/<stage>/cloudformation.json with the functions' zips beside it, and dist/<stage>/serverless for deploy.sh.
# The zips of build.sh must be there, and infra/node_modules.
# usage: package.sh STAGE REGION ARCH [NAME=VALUE...]     the parameters of serverless.yml
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

stage=$1 region=$2 arch=$3
shift 3
if [[ ! $stage =~ ^[a-z][a-z0-9-]{0,19}$ ]]; then
    echo "package: stage \"$stage\": want a lower-case name of letters, digits and -, 20 at most" >&2
    exit 2
fi
dist=$PWD/../dist
parameters=(--param "architecture=$arch")
for parameter in "$@"; do
    if [[ $parameter == architecture=* ]]; then
        echo "package: parameter architecture: give it as ARCH=, which also says what is built" >&2
        exit 2
    fi
    parameters+=(--param "$parameter")
done

mkdir -p "$dist/$stage"
./osls.sh package --stage "$stage" --region "$region" --package "$dist/$stage/serverless" "${parameters[@]}"
node template.js "$dist/$stage/serverless/cloudformation-template-update-stack.json" "$dist" "$arch" "$dist/$stage/cloudformation.json"
echo "package: dist/$stage/cloudformation.json"
