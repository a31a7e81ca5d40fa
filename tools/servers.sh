#!/bin/sh
# Runs tests on servers that tools/servers fetches:
#
#   sh tools/servers.sh all                   everything that uses a server, on each of them
#   sh tools/servers.sh short valkey-9.1.2    in half a minute a part of each area, on one
#   sh tools/servers.sh differences           internal/vredis compared with them, by random lists of commands and
#                                             states: LISTS, STATES and SEED say how many and which
#
# redis-server is that of the PATH. A server that cannot be fetched here is named and left out; with
# HOLDFAST_SERVERS=require that is a failure.
set -u

what=$1
shift
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
go build -o "$dir/servers" ./tools/servers || exit 1
if [ $# = 0 ]; then
  case $what in
  differences) set -- redis-server valkey-9.1.2 redis-8.2.3 ;; # older ones know fewer commands than vredis
  *) set -- $("$dir/servers" list) ;;
  esac
fi

failed=""
skipped=""
parallel=12
run() {
  HOLDFAST_TEST_SERVER=$path go test -vet=off -ldflags=-w -count=1 -p 1 -parallel "$parallel" -timeout 4h "$@" || fails
}

# fails names the server once, however much is red there.
fails() {
  case "$failed " in
  *" $server "*) ;;
  *) failed="$failed $server" ;;
  esac
}

all() {
  run . ./internal/docs ./internal/engine ./internal/command ./internal/locktest/... ./internal/redistest ./internal/topology
  run ./internal/chaos -run '^TestChaos$'
  case $server in
  redis-6*) ;;
  *) run ./internal/vredis ;;
  esac
  if [ -f interop/target/current/redisson-peer.jar ]; then
    HOLDFAST_INTEROP=require run ./internal/interop
  fi
}

short() {
  parallel=16 # these mostly wait
  run -run '^TestMutex$/^(acquire|grant|release|wait)$|^TestFairMutex$/^(acquire|fair|grant)$' .
  run -run '^TestRedlock_(IsALock|OfEveryKindExcludes|ReadersAndWriters|EveryMemberJoins)$' ./internal/locktest/several
  run -run '^TestOperations_' ./internal/docs
  run -run '^Test(Cluster_GracefulFailoverUnderLoad|Publish_PeersHearEachOther|Sentinel_WaiterSurvivesTheFailover|Slots_MultiInCluster)$' ./internal/topology
  run -run '^TestDifference_' ./internal/vredis -args -lists=300 -states=10
}

differences() {
  run -v -run '^TestDifference_' ./internal/vredis -args -lists="${LISTS:-100000}" -states="${STATES:-1000}" -seed="$seed"
}

seed=${SEED:-$(date +%s)}
for server in "$@"; do
  path=$server
  if [ "$server" != redis-server ]; then
    path=$("$dir/servers" path "$server")
    status=$?
    if [ $status = 3 ]; then
      skipped="$skipped $server"
      continue
    elif [ $status != 0 ]; then
      fails
      continue
    fi
  fi
  echo "--- $what, on $server$([ "$what" != differences ] || echo ": SEED=$seed")"
  "$what"
done
[ -z "$skipped" ] || echo "servers: NOT TESTED, since they cannot be fetched here:$skipped"
if [ -n "$failed" ]; then
  echo "servers: failed on:$failed" >&2
  exit 1
fi
[ -z "$skipped" ] || [ "${HOLDFAST_SERVERS:-}" != require ]
