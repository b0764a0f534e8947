#!/bin/sh
# After an install and an upgrade.  No service is started or restarted: docs/upgrade.md says in which order to do that.
set -e
getent group trimtab >/dev/null || groupadd --system trimtab
getent passwd trimtab >/dev/null ||
  useradd --system --gid trimtab --home-dir /var/lib/trimtab --no-create-home --shell /usr/sbin/nologin trimtab
[ ! -d /run/systemd/system ] || systemctl daemon-reload
