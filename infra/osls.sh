#!/usr/bin/env bash
# Runs the pinned osls on serverless.yml, without telemetry or questions.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
export SLS_TELEMETRY_DISABLED=1 SLS_NOTIFICATIONS_MODE=off
exec node node_modules/osls/bin/serverless.js "$@"
