#!/usr/bin/env bash
# Installs what a part of the work needs and this Debian lacks. When nothing is
# missing it only asks dpkg and is done.
#
#   build/setup.sh build|run|test|lint|bench …
set -euo pipefail

php=8.2

build=(
	gcc libc6-dev make ca-certificates
	"libphp$php-embed" "php$php-dev" "php$php-opcache"
)
# The modules that applications expect. A script finds them loaded: Debian's
# packages enable a module for every way to run PHP, ours included.
modules=(
	"php$php-curl" "php$php-gd" "php$php-intl" "php$php-mbstring"
	"php$php-mysql" "php$php-sqlite3" "php$php-xml" "php$php-zip"
)
run=("${build[@]}" "${modules[@]}")
# The applications of the tests and a database, none of them with a service.
# wordpress asks for some PHP and some web server: without a choice that would
# be Apache. mini-httpd is the smallest, and listens on localhost only.
apps=(
	wordpress wordpress-theme-twentytwentythree phpmyadmin dbconfig-no-thanks
	php-symfony-framework-bundle php-symfony-twig-bundle mariadb-server-core
	"php$php" "php$php-cgi" mini-httpd
)
# Clients of Redis, and the parts of frameworks that use them.
redis=(
	redis-tools "php$php-redis" php-nrk-predis php-illuminate-cache
	php-illuminate-redis php-symfony-cache php-symfony-lock
)
test=("${run[@]}" "${apps[@]}" "${redis[@]}" "php$php-cli" curl openssl nghttp2-client ngtcp2-client chromium strace valgrind)
lint=("${build[@]}" clang-format)
bench=("${run[@]}" nginx-light "php$php-fpm" wrk redis-server redis-tools nghttp2-client
	"php$php-apcu" "php$php-redis")

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		echo "setup: run this as root, or install sudo; needed: $*" >&2
		exit 1
	fi
}

# A fresh machine has no package lists yet, an old one has stale lists.
updated=
apt_install() {
	if [ -z "$updated" ]; then
		as_root apt-get -q update
		updated=1
	fi
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
		-o DPkg::Lock::Timeout=300 install --no-install-recommends "$@" </dev/null
}

install_packages() {
	local wanted=("$@") missing
	# A name that dpkg never heard of is a warning on stderr, no output.
	missing=$(comm -23 \
		<(printf '%s\n' "${wanted[@]}" | sort -u) \
		<(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null |
			sed -n 's/^installed //p' | sort -u))
	if [ -n "$missing" ]; then
		echo "setup: installing" $missing
		# Word splitting is meant: package names have no blanks.
		apt_install $missing
	fi
}

# Go 1.21 and later fetch the version that go.mod asks for by themselves.
# Debian 12 has 1.19, its backports a new enough one.
install_go() {
	local have list
	have=$(cd / && GOTOOLCHAIN=local go env GOVERSION 2>/dev/null || true)
	if [[ $have =~ ^go1\.([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -ge 21 ]; then
		return
	fi
	echo "setup: found ${have:-no Go}, need Go 1.21 or later"
	# shellcheck source=/dev/null
	if [ "$(. /etc/os-release && echo "${VERSION_CODENAME:-}")" != bookworm ]; then
		echo "setup: install Go from https://go.dev/dl/ into /usr/local/go, then run this again" >&2
		exit 1
	fi
	echo "setup: installing Go from Debian's bookworm-backports"
	list=$(mktemp --suffix=.list)
	echo "deb http://deb.debian.org/debian bookworm-backports main" >"$list"
	# As one more source for this one command; the system's sources stay as
	# they are.
	as_root sh -c '
		set -e
		cp "$1" /etc/apt/sources.list.d/ephpm-setup.list
		trap "rm -f /etc/apt/sources.list.d/ephpm-setup.list; apt-get -q update" EXIT
		apt-get -q update
		DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 \
			install --no-install-recommends -t bookworm-backports golang-go </dev/null
	' sh "$list"
	rm -f "$list"
}

[ $# -gt 0 ] || { echo "usage: $0 build|run|test|lint|bench ..." >&2; exit 2; }
if ! command -v dpkg-query >/dev/null; then
	echo "setup: no dpkg here: this script knows Debian 12 only; it installs: ${run[*]}, and Go" >&2
	exit 1
fi
packages=()
for part in "$@"; do
	case $part in
	build | run | test | lint | bench)
		declare -n list=$part
		packages+=("${list[@]}")
		;;
	*)
		echo "setup: no such part: $part" >&2
		exit 2
		;;
	esac
done
install_packages "${packages[@]}"
install_go
