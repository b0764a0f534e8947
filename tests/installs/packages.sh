#!/bin/sh
# Installs, upgrades and removes the packages of two versions on a copy of this system that is thrown away:
# packages.sh deb|rpm OLD NEW.  To be run as root in new namespaces: unshare --mount --net.  Prints what is there after
# each step, and what was asked of systemd.
set -eu
kind=$1 old=$2 new=$3
scratch=$(mktemp -d)
mount --make-rprivate /
mount -t tmpfs scratch "$scratch"
mkdir "$scratch/upper" "$scratch/work" "$scratch/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$scratch/upper,workdir=$scratch/work" "$scratch/root"
mount --rbind /dev "$scratch/root/dev"
mount --rbind /proc "$scratch/root/proc"
mkdir "$scratch/root/packages"
cp "$old" "$new" "$scratch/root/packages"
old=/packages/$(basename "$old") new=/packages/$(basename "$new")

# A systemd that runs one of the units, and writes down what it is asked for.
mkdir -p "$scratch/root/run/systemd/system"
rm -f "$scratch/root/usr/bin/systemctl"
cat >"$scratch/root/usr/bin/systemctl" <<'SYSTEMCTL'
#!/bin/sh
echo "$*" >>/asked
case $1 in list-units) echo "trimtab@run.service loaded active running trimtab run" ;; esac
SYSTEMCTL
chmod +x "$scratch/root/usr/bin/systemctl"

cat >"$scratch/root/steps" <<'STEPS'
set -eu
kind=$1 old=$2 new=$3
tell() {
  echo "== $1"
  for path in /opt/trimtab /opt/trimtab/old /opt/trimtab/new /usr/bin/trimtab /etc/trimtab/conf /var/lib/trimtab /var/cache/trimtab; do
    [ ! -e "$path" ] || echo "$path"
  done
  grep -v list-units /asked | sed 's/^/systemctl /'
  : >/asked
}
: >/asked
case $kind in
  deb) install="dpkg --force-depends --install" remove="dpkg --remove" purge="dpkg --purge" ;;
  rpm) install="rpm --upgrade --nodeps" remove="rpm --erase" purge="" ;;
esac
$install "$old" >/dev/null
id=$(id -u trimtab)
mkdir -p /etc/trimtab/conf /var/lib/trimtab /var/cache/trimtab
tell installed
$install "$new" >/dev/null
[ "$(id -u trimtab)" = "$id" ]
tell upgraded
$remove trimtab >/dev/null
tell removed
[ -z "$purge" ] || { $purge trimtab >/dev/null && tell purged; }
$install "$new" >/dev/null
tell "installed again"
STEPS
chroot "$scratch/root" sh /steps "$kind" "$old" "$new"
