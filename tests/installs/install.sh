#!/bin/sh
# Installs trimtab as users do, and tries it: install.sh wheel|pipx|deb|rpm.  In a Debian that has what docs/install.md
# asks for, no checkout and no cache; beside this script are the files of a release.
set -eu
files=$(cd "$(dirname "$0")" && pwd)
mkdir /tmp/elsewhere
cd /tmp/elsewhere

# Runs a command, and prints how long it took.
cat >/tmp/timed <<'PYTHON'
#!/usr/bin/python3
import ctypes, os, resource, subprocess, sys, time
ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: a JVM whose parent has ended counts, too
began = time.monotonic()
code = subprocess.call(sys.argv[1:])
try:
    while True:
        os.wait()
except ChildProcessError:
    pass
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{time.monotonic() - began:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of processor time: {' '.join(sys.argv[1:])}")
sys.exit(code)
PYTHON
chmod +x /tmp/timed

# Runs a command with no network but the loopback.
alone() {
  # shellcheck disable=SC2016 # the inner shell's
  unshare --net sh -c 'python3 -c "
import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack(\"16sh14x\", b\"lo\", 1))  # SIOCSIFFLAGS, IFF_UP
" && exec "$@"' sh "$@"
}

# Names and times of all files of the environment.
listing() { find "$environment" -printf '%p %T@\n' | sort; }

# The unit's process, with its user, its umask, its variables, no capability, and only its folders writable.
as_the_unit_does() {
  install -d -o trimtab -g trimtab -m 750 /var/lib/trimtab /var/cache/trimtab
  # shellcheck disable=SC2016 # the inner shell's
  exec unshare --mount sh -c '
    mount -t tmpfs -o mode=1777 tmp /tmp
    for folder in /var/lib/trimtab /var/cache/trimtab; do mount --bind $folder $folder; done
    mount -o remount,bind,ro /
    cd /etc/trimtab
    umask 0027
    exec setpriv --reuid=trimtab --regid=trimtab --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all \
      env -i PATH="$PATH" USER=trimtab HOME=/var/lib/trimtab TRIMTAB_CACHE=/var/cache/trimtab "$@"' sh "$@"
}

case $1 in
  wheel)
    environment=/opt/there
    python3 -m venv $environment
    /tmp/timed $environment/bin/pip install --quiet "$(ls "$files"/*.whl)[laws,web]"
    trimtab=$environment/bin/trimtab
    ;;
  pipx)
    apt-get install -y -qq --no-install-recommends pipx >/dev/null
    /tmp/timed pipx install "$(ls "$files"/*.whl)[laws,web]"
    environment=$HOME/.local trimtab=$HOME/.local/bin/trimtab
    ;;
  deb)
    alone /tmp/timed dpkg --install "$files"/*.deb
    environment=/opt/trimtab trimtab=trimtab
    ;;
  rpm)
    apt-get install -y -qq --no-install-recommends rpm >/dev/null
    rpm --query --requires --package "$files"/*.rpm
    # Without --nodeps RPM asks its own list of packages, which is empty here, for Python and Java.
    alone /tmp/timed rpm --install --nodeps "$files"/*.rpm
    rpm --verify --nodeps trimtab
    environment=/opt/trimtab trimtab=trimtab
    ;;
esac

listing >/tmp/before
/tmp/timed $trimtab --version
$trimtab options >/dev/null
$trimtab strategies --help >/dev/null
alone /tmp/timed timeout 900 $trimtab demo --intervals 3
$trimtab init --log folder --state /var/lib/trimtab conf >/dev/null

case $1 in deb | rpm)
  for page in trimtab trimtab-run; do [ -s /usr/share/man/man1/$page.1.gz ] || exit 1; done
  cp -r conf /etc/trimtab/conf
  sed -i 's/^# controller = /controller = /' /etc/trimtab/conf/trimtab.toml
  command=$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/trimtab@.service | sed 's/%i/run/')
  # shellcheck disable=SC2086 # words
  as_the_unit_does $command &
  unit=$!
  python3 - $unit <<'PYTHON'
import os, sys, time, urllib.request
for _ in range(600):
    os.readlink(f"/proc/{sys.argv[1]}/exe")  # fails once it has ended
    try:
        print("healthz:", urllib.request.urlopen("http://127.0.0.1:9640/healthz").status)
        break
    except OSError:
        time.sleep(1)
else:
    raise SystemExit("the unit's process is not healthy after 600 s")
PYTHON
  sleep 5
  kill -TERM $unit
  wait $unit
  cp -r /var/cache/trimtab /tmp/cache
  find /tmp/cache -name '*.jar' -not -type l | grep . && exit 1 # nothing was fetched: the package has all jars
  ;;
esac
listing >/tmp/after
cmp /tmp/before /tmp/after
echo "nothing was written to $environment"

case $1 in
  wheel) $environment/bin/pip uninstall --quiet --yes trimtab ;;
  pipx) pipx uninstall trimtab ;;
  deb) dpkg --purge trimtab ;;
  rpm) rpm --erase trimtab ;;
esac
case $1 in wheel | pipx)
  for path in "$trimtab" "$environment"/lib/python3*/site-packages/controller "$environment"/lib/python3*/site-packages/streaming \
    "$environment"/lib/python3*/site-packages/trimtab-* "$environment"/pipx/venvs/trimtab; do
    if [ -e "$path" ]; then exit 1; fi
  done
  echo "removed: nothing of trimtab is left in $environment"
  ;;
esac
case $1 in deb | rpm)
  if [ -e /opt/trimtab ] || [ -e /var/cache/trimtab ]; then exit 1; fi
  if [ ! -d /var/lib/trimtab ] || [ ! -d /etc/trimtab/conf ]; then exit 1; fi
  echo "removed: what trimtab remembers and its settings are still there"
  ;;
esac
echo "OK $1"
