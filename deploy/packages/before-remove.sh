#!/bin/sh
# Debian says remove or upgrade; RPM says how many versions are left, 0 or 1.  An upgrade stops nothing.
set -e
case "${1:-}" in
  remove | 0)
    if [ -d /run/systemd/system ]; then
      systemctl list-units --all --plain --no-legend 'trimtab@*' | cut -d ' ' -f 1 | xargs --no-run-if-empty systemctl disable --now
    fi
    ;;
esac
