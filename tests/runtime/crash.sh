#!/bin/sh
# Kills a writer at seeded moments and before each step of the publish protocol; after each the store must read whole, and take
# a new writer. VV_CRASH_RUNS (200) is the number of moments, VV_SEED makes them repeat.
set -u
writer=$top_builddir/tests/runtime/crash_writer
varve=$top_builddir/varve
runs=${VV_CRASH_RUNS:-200}
seed=${VV_SEED:-$$}
unset BAML_PROFILE BAML_PROFILE_DIR BAML_PROFILE_PUBLISH_INTERVAL_MS
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
echo "# VV_SEED=$seed VV_CRASH_RUNS=$runs"
n=0
failed=0

result() { # status description
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; failed=1; fi
}

# The store as it is now: judged by the reader library and by the command.
check_store() {
    "$writer" verify "$1" >"$dir/verdict" 2>&1 || { sed 's/^/# /' "$dir/verdict"; return 1; }
    "$varve" dump "$1" >"$dir/dump" 2>"$dir/err" || { sed 's/^/# /' "$dir/err"; return 1; }
    ! grep -E -q 'CorruptDataSegment|MissingDataSegment|IndexCorrupt|"error"' "$dir/dump"
}

for step in $("$writer" steps); do
    bad=0
    for at in 1 2 3 7; do
        store=$dir/$step-$at/profiles-v1
        mkdir "$dir/$step-$at"
        CRASH_STEP=$step CRASH_AT=$at "$writer" write "$store" 2>/dev/null
        [ $? = 137 ] || bad=1
        check_store "$store" || bad=1
    done
    result $bad "killed before step $step"
    rm -rf "$dir/$step"-*
done

# Moments from 0 to 127 ms after the start, in batches that share a store.
i=0
state=$seed
while [ $i -lt "$runs" ]; do
    bad=0
    store=$dir/moments-$i/profiles-v1
    mkdir "$dir/moments-$i"
    last=$((i + 20))
    while [ $i -lt $last ] && [ $i -lt "$runs" ]; do
        state=$(((state * 1103515245 + 12345) % 2147483648))
        "$writer" write "$store" 2>/dev/null &
        pid=$!
        sleep "$(printf '0.%03d' $((state / 65536 % 128 + 1)))"
        kill -KILL $pid
        wait $pid 2>/dev/null # until the kernel has let go of its locks
        [ -e "$store" ] || { i=$((i + 1)); continue; } # before it had made anything
        check_store "$store" || { bad=1; echo "# moment $i of seed $seed"; }
        i=$((i + 1))
    done
    result $bad "killed at moments up to $i"
    rm -rf "$dir"/moments-*
done
echo "1..$n"
exit $failed
