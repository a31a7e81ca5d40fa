#!/bin/sh
# Runs make targets one after the other, and says which of them has failed and what each has taken:
#
#   sh tools/steps.sh fmt vet lint
#
# A step that fails does not keep the others from running.
set -u

failed=""
table=""
begin=$(date +%s)
for target in "$@"; do
  printf '=== make %s\n' "$target"
  from=$(date +%s)
  verdict=ok
  if ! "${MAKE:-make}" --no-print-directory "$target"; then
    verdict=FAILED
    failed="$failed $target"
  fi
  table="$table$(printf '%-6s %5d s  make %s' "$verdict" $(($(date +%s) - from)) "$target")
"
done
printf '\n%s%-6s %5d s\n' "$table" "in all" $(($(date +%s) - begin))
if [ -n "$failed" ]; then
  printf 'failed:%s\n' "$failed" >&2
  exit 1
fi
