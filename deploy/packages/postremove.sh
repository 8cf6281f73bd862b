#!/bin/sh
# After the files are gone. The user and /var/lib/promlake stay: the data is not the package's.
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
fi
if [ "$1" = purge ]; then
    rm -rf /var/cache/promlake
fi
