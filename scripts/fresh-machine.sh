#!/bin/sh
# Runs a command in a clone of HEAD on a new machine: a Debian 12 root file system with git and
# ca-certificates and nothing else.
#   scripts/fresh-machine.sh COMMAND [ARGUMENT...]
# Needs root, mmdebstrap (installed if possible) and 6 GB in $TMPDIR. Exit status: the command's, or 75
# with the reason where no such machine can be made. All mounts are in a mount namespace that ends with
# the command, so none is left behind.
set -eu

cannot() {
	echo "fresh-machine: $1" >&2
	exit 75
}

# Second half: runs inside the namespace.
if [ "${1:-}" = --inside ]; then
	root=$2
	shift 2
	mount --bind "$root" "$root" # / must be a mount point
	mount -t proc proc "$root/proc"
	mount --rbind /sys "$root/sys"
	mount --rbind /dev "$root/dev"
	# Settings that package managers need to reach their registries; the rest of the environment is dropped.
	network=$(env | sed -n -E 's/^((https?|no|all|HTTPS?|NO|ALL)_(proxy|PROXY)|PIP_(INDEX_URL|EXTRA_INDEX_URL|CERT|TRUSTED_HOST|PROXY|DEFAULT_TIMEOUT)|CARGO_(HTTP|NET|REGISTRIES)_[A-Z_]+|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE)=.*/\1/p')
	for name in $network; do
		eval "value=\$$name"
		set -- "$name=$value" "$@"
	done
	exec chroot "$root" env -i --default-signal=INT -C /root/fullpipe HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
fi

[ $# -gt 0 ] || {
	echo "usage: scripts/fresh-machine.sh COMMAND [ARGUMENT...]" >&2
	exit 2
}
repository=$(cd "$(dirname "$0")/.." && pwd)
[ "$(id -u)" -eq 0 ] || cannot "needs root"
if ! command -v mmdebstrap >/dev/null; then
	{ apt-get update -qq && apt-get install -y -qq --no-install-recommends mmdebstrap; } \
		>/dev/null 2>&1 || cannot "mmdebstrap cannot be installed"
fi
unshare --mount --pid --fork true 2>/dev/null || cannot "mount namespaces are not allowed"

root=$(mktemp -d "${TMPDIR:-/tmp}/fresh-machine.XXXXXX")
child=
trap '[ -z "$child" ] || kill -KILL "$child"; rm -rf --one-file-system "$root"' EXIT
trap 'exit 130' INT TERM
chmod 755 "$root"

# On Debian 12, this machine's own package sources: others may be out of its reach.
sources=
. /etc/os-release
if [ "${ID:-}/${VERSION_CODENAME:-}" = debian/bookworm ]; then
	for file in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do
		[ ! -s "$file" ] || { sources=$file && break; }
	done
fi
# shellcheck disable=SC2086 # a file or none
mmdebstrap --quiet --variant=minbase bookworm "$root" $sources --include=git,ca-certificates \
	2>"$root.log" || {
	tail -n 5 "$root.log" >&2
	rm -f "$root.log"
	cannot "mmdebstrap made no root file system"
}
rm -f "$root.log"

for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/apt/apt.conf.d /etc/ssl/certs \
	/usr/local/share/ca-certificates; do
	[ ! -e "$file" ] || (cd / && tar -chf - ".$file") | tar -xf - -C "$root"
done
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # packages start no services
chmod 755 "$root/usr/sbin/policy-rc.d"
mkdir -p "$root/root/.cargo"
for file in "${CARGO_HOME:-$HOME/.cargo}"/config.toml "${CARGO_HOME:-$HOME/.cargo}"/config; do
	[ ! -e "$file" ] || cp "$file" "$root/root/.cargo/"
done
git clone --quiet "$repository" "$root/root/fullpipe" || cannot "$repository cannot be cloned"

# In the background, so that a signal ends it at once: with unshare all its processes are killed.
unshare --mount --propagation slave --pid --fork --kill-child "$0" --inside "$root" "$@" &
child=$!
status=0
wait "$child" || status=$?
child=
exit "$status"
