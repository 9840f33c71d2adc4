#!/bin/sh
# Runs a command in a clone of HEAD on a machine where nothing was installed by hand: a new Debian 12
# root file system with what README.md asks for (python3, a C compiler, make, Rust), and no more.
#   scripts/fresh-machine.sh COMMAND [ARGUMENT...]
# Needs root, mmdebstrap (installed if it can be) and 6 GB in $TMPDIR. Exit status: the command's; 75
# with the reason where there can be no such machine here. All mounts are in a namespace of their
# own, which ends with the processes in it: whatever happens, none is left.
set -eu

cannot() {
	echo "fresh-machine: $1" >&2
	exit 75
}

# Second half: inside the namespace, ROOT is ready to be entered.
if [ "${1:-}" = --inside ]; then
	root=$2 toolchain=$3 data=$4
	shift 4
	mount --bind "$root" "$root" # a root is a mount point
	mount -t proc proc "$root/proc"
	mount --rbind /sys "$root/sys"
	mount --rbind /dev "$root/dev"
	mount --bind -o ro "$toolchain" "$root/opt/rust"
	[ -z "$data" ] || mount --bind -o ro "$data" "$root/root/shared"
	# What leads to package indices goes along; how this shell was set up does not.
	network=$(env | sed -n -E 's/^((https?|no|all|HTTPS?|NO|ALL)_(proxy|PROXY)|PIP_(INDEX_URL|EXTRA_INDEX_URL|CERT|TRUSTED_HOST|PROXY|DEFAULT_TIMEOUT)|CARGO_(HTTP|NET|REGISTRIES)_[A-Z_]+|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE)=.*/\1/p')
	for name in $network; do
		eval "value=\$$name"
		set -- "$name=$value" "$@"
	done
	exec chroot "$root" env -i --default-signal=INT -C /root/fullpipe HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" \
		PATH=/opt/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		"$@"
fi

[ $# -gt 0 ] || {
	echo "usage: scripts/fresh-machine.sh COMMAND [ARGUMENT...]" >&2
	exit 2
}
repository=$(cd "$(dirname "$0")/.." && pwd)
[ "$(id -u)" -eq 0 ] || cannot "needs root"
toolchain=$(rustc --print sysroot 2>/dev/null) || cannot "rustc does not work here"
[ "$toolchain" != /usr ] || cannot "Rust is installed in /usr here and cannot be carried over"
if ! command -v mmdebstrap >/dev/null; then
	{ apt-get update -qq && apt-get install -y -qq --no-install-recommends mmdebstrap; } \
		>/dev/null 2>&1 || cannot "mmdebstrap cannot be installed"
fi
unshare --mount --pid --fork true 2>/dev/null || cannot "no mount namespaces allowed"

root=$(mktemp -d "${TMPDIR:-/tmp}/fresh-machine.XXXXXX")
child=
trap '[ -z "$child" ] || kill -KILL "$child"; rm -rf --one-file-system "$root"' EXIT
trap 'exit 130' INT TERM
chmod 755 "$root"

# This machine's own package sources, where it is a Debian: they may be the only ones it reaches.
sources=
. /etc/os-release
if [ "${ID:-}/${VERSION_CODENAME:-}" = debian/bookworm ]; then
	for file in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do
		[ ! -s "$file" ] || { sources=$file && break; }
	done
fi
# shellcheck disable=SC2086 # a file or none
mmdebstrap --quiet --variant=minbase bookworm "$root" $sources \
	--include=python3,python3-venv,gcc,libc6-dev,make,git,ca-certificates \
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
mkdir -p "$root/root/.cargo" "$root/root/shared" "$root/opt/rust"
for file in "${CARGO_HOME:-$HOME/.cargo}"/config.toml "${CARGO_HOME:-$HOME/.cargo}"/config; do
	[ ! -e "$file" ] || cp "$file" "$root/root/.cargo/"
done
git clone --quiet "$repository" "$root/root/fullpipe" || cannot "$repository cannot be cloned"
data=$(dirname "$repository")/shared # data for checks, which some tests compare with
[ -d "$data" ] || data=

# In the background, so that a signal ends it at once: with unshare all processes of the namespace die.
unshare --mount --propagation slave --pid --fork --kill-child \
	"$0" --inside "$root" "$toolchain" "$data" "$@" &
child=$!
status=0
wait "$child" || status=$?
child=
exit "$status"
