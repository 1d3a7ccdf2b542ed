#!/bin/sh
# run.sh SECONDS CORPORA FUZZER...: runs each libFuzzer program for so long, as many at a time as there are processors.
# What they find stays, and is named.
set -u
if [ "$1" = one ]; then
    name=${4##*fuzz_}
    mkdir "$found/$name"
    "./$4" -max_total_time="$2" -timeout=20 -rss_limit_mb=2048 -verbosity=0 -artifact_prefix="$found/" \
        "$found/$name" "$3/$name" >"$found/$name.out" 2>&1
    status=$?
    # At once, that lines of two don't mix.
    printf '== %s\n%s\n' "$4" "$(cat "$found/$name.out")"
    rm -rf "$found/$name" "$found/$name.out"
    [ $status = 0 ]
    exit
fi
seconds=$1 corpora=$2
shift 2
found=$(mktemp -d) || exit 1
export found
if printf '%s\n' "$@" | xargs -n 1 -P "$(nproc)" "$0" one "$seconds" "$corpora"; then
    rm -rf "$found"
else
    echo "findings are in $found"
    exit 1
fi
