#!/bin/sh
# Installs chromium with the system's package manager, if there is no browser: bench/browser looks at the debug page with it.
set -eu

for browser in chromium chromium-browser google-chrome; do
  if "$browser" --version >/dev/null 2>&1; then # the package of Ubuntu can be a program that only says where chromium is
    exit 0
  fi
done
as_root=""
if [ "$(id -u)" != 0 ]; then
  as_root=sudo
fi
echo "no chromium: installing"
if command -v apt-get >/dev/null 2>&1; then
  $as_root apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends chromium
elif command -v dnf >/dev/null 2>&1; then
  $as_root dnf install -y -q chromium
elif command -v apk >/dev/null 2>&1; then
  $as_root apk add --quiet chromium
elif command -v pacman >/dev/null 2>&1; then
  $as_root pacman -S --noconfirm --quiet chromium
elif command -v brew >/dev/null 2>&1; then
  brew install --cask chromium # refuses to run as root
else
  echo "this system has none of apt-get, dnf, apk, pacman and brew. Please install chromium." >&2
  exit 1
fi
chromium --version
