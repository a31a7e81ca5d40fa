#!/bin/sh
# Installs redis-server with the system's package manager, if it is missing. The tests
# run real servers; there is no substitute for one.
set -eu

if command -v redis-server >/dev/null 2>&1; then
  exit 0
fi
as_root=""
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null 2>&1; then
    echo "redis-server is missing and cannot be installed without root or sudo. Please install it." >&2
    exit 1
  fi
  as_root=sudo
fi
echo "redis-server is missing: installing it"
if command -v apt-get >/dev/null 2>&1; then
  $as_root apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends redis-tools redis-server
elif command -v dnf >/dev/null 2>&1; then
  $as_root dnf install -y -q redis || $as_root dnf install -y -q valkey-compat-redis
elif command -v apk >/dev/null 2>&1; then
  $as_root apk add --quiet redis
elif command -v pacman >/dev/null 2>&1; then
  $as_root pacman -S --noconfirm --quiet redis
elif command -v brew >/dev/null 2>&1; then
  brew install redis # refuses to run as root
else
  echo "redis-server is missing, and this system has none of apt-get, dnf, apk, pacman and brew. Please install it." >&2
  exit 1
fi
command -v redis-server >/dev/null 2>&1 || {
  echo "the package was installed, but there is still no redis-server in PATH" >&2
  exit 1
}
