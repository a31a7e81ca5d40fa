#!/bin/sh
# Installs zsh and fish with the system's package manager, if they are missing: the tests of
# completion run them. CI calls it; elsewhere these tests are skipped without the shells.
set -eu

missing=""
for shell in zsh fish; do
  command -v "$shell" >/dev/null 2>&1 || missing="$missing $shell"
done
if [ -z "$missing" ]; then
  exit 0
fi
as_root=""
if [ "$(id -u)" != 0 ]; then
  as_root=sudo
fi
echo "missing:$missing: installing"
if command -v apt-get >/dev/null 2>&1; then
  $as_root apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $missing
elif command -v dnf >/dev/null 2>&1; then
  $as_root dnf install -y -q $missing
elif command -v apk >/dev/null 2>&1; then
  $as_root apk add --quiet $missing
elif command -v pacman >/dev/null 2>&1; then
  $as_root pacman -S --noconfirm --quiet $missing
elif command -v brew >/dev/null 2>&1; then
  brew install $missing # refuses to run as root
else
  echo "this system has none of apt-get, dnf, apk, pacman and brew. Please install$missing." >&2
  exit 1
fi
