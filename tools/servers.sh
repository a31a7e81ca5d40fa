#!/bin/sh
# Runs tests on servers that tools/servers fetches:
#
#   sh tools/servers.sh all                   everything that uses a server, on each of them
#   sh tools/servers.sh short valkey-9.1.2    a part, on one
#
# A server that cannot be fetched here is skipped and named; HOLDFAST_SERVERS=require makes a failure of that.
set -u

what=$1
shift
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
go build -o "$dir/servers" ./tools/servers || exit 1
[ $# -gt 0 ] || set -- $("$dir/servers" list)

failed=""
skipped=""
run() {
  HOLDFAST_TEST_SERVER=$path go test -count=1 -p 1 -parallel 6 -timeout 1h "$@" || failed="$failed $server"
}
for server in "$@"; do
  path=$("$dir/servers" path "$server")
  status=$?
  if [ $status = 3 ]; then
    skipped="$skipped $server"
    continue
  elif [ $status != 0 ]; then
    failed="$failed $server"
    continue
  fi
  echo "--- on $server"
  if [ "$what" = short ]; then
    run -run '^Test(Mutex|FairMutex|RWMutex_Sides)$/^(acquire|release|grant)|^TestMulti_OfEveryKind|^TestRedlock_IsALock' .
  else
    run . ./internal/locktest ./internal/redistest ./internal/topology
    [ ! -f interop/target/current/redisson-peer.jar ] || run ./internal/interop
  fi
done
[ -z "$skipped" ] || echo "servers: not tested, since they cannot be fetched here:$skipped"
if [ -n "$failed" ]; then
  echo "servers: failed on:$failed" >&2
  exit 1
fi
[ -z "$skipped" ] || [ "${HOLDFAST_SERVERS:-}" != require ]
