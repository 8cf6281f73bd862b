#!/bin/sh
# Before the files go: the server ends, unless this is an upgrade. dpkg names what it does, rpm the
# number of versions that stay.
set -e
case "$1" in
remove | deconfigure | 0)
    if [ -d /run/systemd/system ]; then
        systemctl disable --now promlake.service
    fi
    ;;
esac
