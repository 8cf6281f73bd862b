#!/bin/sh
# After the files are there: the user, and a restart of a server that ran with the old ones. A first
# installation starts nothing.
set -e
if ! getent passwd promlake >/dev/null; then
    if command -v systemd-sysusers >/dev/null; then
        systemd-sysusers promlake.conf
    else
        useradd --system --user-group --no-create-home --home-dir /var/lib/promlake --shell /usr/sbin/nologin promlake
    fi
fi
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl try-restart promlake.service
fi
