#!/bin/sh
# Fetches Debian's prometheus (with promtool), prometheus-alertmanager, victoria-metrics,
# prometheus-node-exporter and collectd and unpacks them into a cache folder. It installs nothing and starts no service. A second
# run does nothing.
#
# usage: fetch-peers.sh [FOLDER]     default: .cache/peers in the repository
# The programs are in FOLDER/usr/bin and FOLDER/usr/sbin afterwards. Requires apt-get, dpkg-deb and flock. It runs
# apt-get update, which needs root, only if a package cannot be found without it.
set -eu

packages="prometheus prometheus-alertmanager victoria-metrics prometheus-node-exporter collectd-core"
programs="bin/prometheus bin/promtool bin/prometheus-alertmanager bin/victoria-metrics bin/prometheus-node-exporter sbin/collectd"

folder=${1:-$(cd "$(dirname "$0")/../.." && pwd)/.cache/peers}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
echo '*' >"$folder/.gitignore"
exec 9>"$folder/lock" && flock 9 # tests and benchmarks may both call this
lists_fresh=

say() { printf 'fetch-peers: %s\n' "$*" >&2; }

# Every unpacked program must at least find its shared libraries and print its version.
check() {
    for program in $programs; do
        case $program in
            bin/victoria-metrics) flag=-version ;; # Go's own flag syntax
            sbin/collectd) flag=-h ;;
            *) flag=--version ;;
        esac
        if ! "$folder/usr/$program" "$flag" >/dev/null 2>"$folder/error.log"; then
            say "$program does not run (if it is gone, delete $folder and start again):"
            cat "$folder/error.log" >&2
            ldd "$folder/usr/$program" 2>/dev/null | grep 'not found' >&2 || true
            return 1
        fi
    done
    rm -f "$folder/error.log"
}

# download PACKAGE leaves PACKAGE_*.deb in $work.
download() {
    if (cd "$work" && apt-get -qq -o APT::Sandbox::User=root download "$1" 2>"$folder/error.log"); then return 0; fi
    if [ -z "$lists_fresh" ]; then
        say "$1 cannot be downloaded with the package lists at hand: updating them"
        lists_fresh=yes
        if ! apt-get -qq update; then
            say "apt-get update failed (it needs root and the network)"
            return 1
        fi
        if (cd "$work" && apt-get -qq -o APT::Sandbox::User=root download "$1" 2>"$folder/error.log"); then return 0; fi
    fi
    cat "$folder/error.log" >&2
    say "$1 cannot be downloaded"
    return 1
}

missing=
for package in $packages; do
    [ -e "$folder/$package.unpacked" ] || missing="$missing $package"
done
if [ -z "$missing" ]; then
    check
    say "all there: $folder/usr"
    exit 0
fi
for tool in apt-get dpkg-deb; do
    command -v "$tool" >/dev/null || { say "$tool is missing: this requires a Debian-based system"; exit 1; }
done

work=$(mktemp -d "$folder/download.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
for package in $missing; do
    download "$package"
    dpkg-deb -x "$work/$package"_*.deb "$folder"
    dpkg-deb -f "$work/$package"_*.deb Version >"$folder/$package.unpacked" # the last step: it marks the package as complete
    say "$package $(cat "$folder/$package.unpacked")"
done
check
say "all there: $folder/usr"
