#!/bin/sh
# Deploys what `make localstack-compose` packaged; the parameters are those that it was packaged with.
set -eu
cd "$(dirname "$0")"
# shellcheck disable=SC1091 # it is beside this file
. ./parameters.env
case $(uname -m) in
    x86_64) arch=x86_64 ;;
    *) arch=arm64 ;;
esac
# shellcheck disable=SC2086 # one word for each parameter
exec ../../deploy.sh local us-east-1 "$arch" $PARAMS
