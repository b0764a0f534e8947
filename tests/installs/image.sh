#!/bin/sh
# Runs a command in an unpacked image as an engine does: image.sh ROOT USER FOLDER COMMAND..., with the variables that it
# gets.  The root file system is read-only; /tmp, /proc and some devices are there, and no network but the loopback.
# To be run in new namespaces: unshare --mount --pid --fork --kill-child --net.
set -eu
root=$1 user=$2 folder=$3
shift 3
mount --make-rprivate /
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=1777 tmp "$root/tmp"
mount -t tmpfs -o mode=755 dev "$root/dev"
for device in null zero full random urandom; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir -m 1777 "$root/dev/shm"
ln -s /proc/self/fd "$root/dev/fd"
for device in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${device%:*}" "$root/dev/${device#*:}"; done
python3 -c '
import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
'
# shellcheck disable=SC2016 # the inner shell's
exec chroot --userspec="$user" "$root" /bin/sh -c 'cd "$0" && exec "$@"' "$folder" "$@"
