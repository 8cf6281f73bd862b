#!/usr/bin/env bash
# Runs Debian's prometheus with its page, for make bench-web. The program looks for the page and
# its libraries below /usr/share: a mount that only this process sees puts them there. Nothing is
# installed.
#
# usage: peer.sh fetch          fetches the page's libraries into .cache/peers-page
#        peer.sh run ARGUMENT…  runs prometheus; make peers has fetched it into .cache/peers
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

peers=$PWD/.cache/peers
libraries=$PWD/.cache/peers-page
packages=(fonts-glyphicons-halflings libjs-bootstrap4 libjs-d3 libjs-eonasdan-bootstrap-datetimepicker libjs-jquery libjs-jquery-hotkeys
    libjs-moment libjs-moment-timezone libjs-mustache libjs-popper.js libjs-rickshaw)

case ${1:-} in
fetch)
    if [ -e "$libraries/ready" ]; then
        exit 0
    fi
    mkdir -p "$libraries"
    work=$(mktemp -d "$libraries/download.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    (cd "$work" && apt-get -qq -o APT::Sandbox::User=root download "${packages[@]}")
    for package in "$work"/*.deb; do
        dpkg-deb -x "$package" "$libraries"
    done
    touch "$libraries/ready"
    ;;
run)
    # shellcheck disable=SC2016 # the inner shell expands its own arguments
    exec unshare --map-root-user --mount sh -c \
        'peers=$1 libraries=$2; shift 2; mount -t overlay overlay -o "lowerdir=$peers/usr/share:$libraries/usr/share:/usr/share" /usr/share && exec "$peers/usr/bin/prometheus" "$@"' \
        sh "$peers" "$libraries" "${@:2}"
    ;;
*)
    sed -n 's/^# \?//p' "$0" | sed -n 5,6p >&2
    exit 2
    ;;
esac
