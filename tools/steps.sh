#!/usr/bin/env bash
# Runs make targets, and reports which of them have failed and how long each took:
#
#	bash tools/steps.sh fmt vet lint,unit+real,around
#
# It runs its arguments in a row. An argument may have several lanes, joined by +, which run side by side; a lane has
# targets, joined by commas, which run in a row. Targets behind a slash belong to no lane: a lane that has come to its end takes the
# next of them. A target that fails does not keep the others from running.
#
# Each line of output names its target. At the end comes the whole output of each target that has failed, and then a
# table with the time of each target.
set -u
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'trap - TERM; kill 0; exit 1' INT TERM
touch "$dir/failed" "$dir/table"

# step runs one target.
step() {
  local from=$SECONDS verdict=ok
  printf '%-13s | make %s\n' "$1" "$1"
  { "${MAKE:-make}" --no-print-directory "$1" 2>&1 || echo "$1" >>"$dir/failed"; } | tee "$dir/$1.out" |
    while IFS= read -r line || [ -n "$line" ]; do printf '%-13s | %s\n' "$1" "$line"; done
  if grep -qx -e "$1" "$dir/failed"; then verdict=FAILED; fi
  printf '%-13s | %-6s %4d s\n' "$1" $verdict $((SECONDS - from)) | tee -a "$dir/table"
}

# take prints the next target that belongs to no lane, or fails. Lanes take turns.
take() {
  until mkdir "$dir/lock" 2>/dev/null; do sleep 0.1; done
  target=$(head -n 1 "$dir/rest") && sed 1d "$dir/rest" >"$dir/left" && mv "$dir/left" "$dir/rest"
  rmdir "$dir/lock"
  [ -n "$target" ]
}

lane() {
  for target in ${1//,/ }; do step "$target"; done
  while take; do step "$target"; done
}

for arg; do
  case $arg in */*) tr , '\n' <<<"${arg#*/}" ;; esac >"$dir/rest"
  for lane in $(tr + ' ' <<<"${arg%%/*}"); do lane "$lane" & done
  wait
done

while read -r target; do
  printf '\n=== make %s\n' "$target"
  cat "$dir/$target.out"
done <"$dir/failed"
echo
cat "$dir/table"
printf '%-13s | %11d s\n' 'in all' "$SECONDS"
[ ! -s "$dir/failed" ] || { echo "failed: $(tr '\n' ' ' <"$dir/failed")"; exit 1; }
