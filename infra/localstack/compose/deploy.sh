#!/bin/sh
# Deploys the package of `make localstack-compose`, with its parameters.
set -eu
cd "$(dirname "$0")"
# shellcheck disable=SC1091 # a file in this folder
. ./parameters.env
case $(uname -m) in
    x86_64) arch=x86_64 ;;
    *) arch=arm64 ;;
esac
# shellcheck disable=SC2086 # one word for each parameter
exec ../../deploy.sh local us-east-1 "$arch" $PARAMS
