#!/usr/bin/env bash
# Runs cmocka programs one after the other: of each its name and cmocka's closing lines, and of one that fails
# everything it said. Ends with status 1 when one failed.
set -u
limit=${UNIT_TIMEOUT:-$([ "${SANITIZE:-}" = thread ] && echo 900 || echo 300)}
failed=()
output=$(mktemp)
trap 'rm -f "$output"' EXIT
for program in "$@"; do
    echo "== ${program##*/}"
    timeout "$limit" "$program" >"$output" 2>&1 </dev/null
    status=$?
    if [ $status -eq 0 ]; then
        grep -a -E '^\[ *(=====*|PASSED|FAILED|SKIPPED) *\] .*[0-9]+ test\(s\)' "$output" | tail -n 3
    else
        failed+=("${program##*/}")
        cat "$output"
        echo "${program##*/} ended with status $status"
    fi
done
echo "units: $(($# - ${#failed[@]})) passed, ${#failed[@]} failed${failed[*]:+: ${failed[*]}}"
[ ${#failed[@]} -eq 0 ]
