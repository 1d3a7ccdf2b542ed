#!/bin/bash
# Installs what the tests need, builds in every way that matters, and runs every test. The last line is "N passed, N failed".
#
#   gcc            the whole suite: units, vectors, fuzz corpora, crash and end-to-end tests, Chromium
#   clang          builds without a warning
#   asan           the suite under AddressSanitizer and UBSan, but for the page before a stand-in server, with the contract checks of
#                  a debug build
#   tsan           the runtime's and server's tests under ThreadSanitizer
#   fuzz           each fuzzer for FUZZ_SECONDS (5)
#   distcheck      the release archive builds, tests, installs and uninstalls as an ordinary user
#   bench, soak    scaled down: that they run, never how fast
#
# ./test.sh STAGE... runs only those. Logs are in build*/ and in build/stages/.
set -u
cd "$(dirname "$0")" || exit 1
. scripts/packages.sh
# Tests wait more than they compute: for disks, for clocks, for each other.
jobs=$(($(nproc) * 2))
# One playwright-core for the browser tests of all builds.
export VV_NODE_DIR=$PWD/build/web-tests

passed=0 failed=0 skipped=0
logs=$PWD/build/stages

say() { printf '\n== %s (%s)\n' "$1" "$(date +%T)"; }

# count LOG: adds the last of automake's summaries in a log (a failing run prints its summary twice).
count() {
    local sums
    sums=$(awk '$1 == "#" && $2 == "TOTAL:" { p = f = s = 0 } $1 == "#" && $2 ~ /^(PASS|XFAIL):$/ { p += $3 } $1 == "#" && $2 ~ /^(FAIL|XPASS|ERROR):$/ { f += $3 }
        $1 == "#" && $2 == "SKIP:" { s += $3 } END { print p + 0, f + 0, s + 0 }' "$1")
    # shellcheck disable=SC2086 # three numbers
    set -- $sums
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
    echo "   $1 passed, $2 failed, $3 skipped"
}

ok() {
    passed=$((passed + 1))
    echo "   ok: $1"
}

not_ok() {
    failed=$((failed + 1))
    echo "   FAILED: $1 (log: $2)"
    tail -n 25 "$2" | sed 's/^/   | /'
}

# one NAME COMMAND...: a step that counts as one test.
one() {
    local name=$1 log
    log=$logs/$(printf %s "$name" | tr -c 'a-z0-9\n' '-').log
    shift
    if "$@" >"$log" 2>&1; then ok "$name"; else not_ok "$name" "$log"; fi
}

# suite DIR TARGET: a make target that runs automake tests in DIR.
suite() {
    local log status
    log=$logs/$1-$2.log
    make -C "$1" -s -k -j"$jobs" "$2" VERBOSE=1 >"$log" 2>&1
    status=$?
    count "$log"
    if [ $status != 0 ]; then
        grep -hE '^(FAIL|ERROR|XPASS)[: ]' "$log" | sort -u | head -n 40 | sed 's/^/   | /'
        # A suite that stopped before its summary has counted nothing.
        grep -q '^# FAIL:' "$log" || not_ok "make $2 in $1" "$log"
    fi
}

stage_gcc() {
    one "build with gcc, warnings as errors" build_in build --enable-werror --with-check CC=gcc
    suite build check
}

stage_clang() {
    # Clang's warnings are the same without optimization.
    one "build with clang, warnings as errors" build_in build-clang --enable-werror --with-check CC=clang CFLAGS=-O0
    one "build the tests with clang" make -C build-clang -s -j"$(nproc)" check TESTS=
}

stage_asan() {
    one "build with AddressSanitizer and UBSan" build_in build-asan --enable-werror --with-check --enable-debug --enable-sanitizers CC=gcc CFLAGS="-O1 -g1"
    # Fewer seeds than the plain build takes: each is an order slower here.
    VV_CRASH_RUNS=40 VV_DENIAL_LENGTHS=3 VV_DIFFERENTIAL_SEEDS=50 VV_SEEDS=5 VV_GROWTH_SEEDS=4 VV_ANSWERS=3000 \
        VV_LUACHECK=/usr/share/lua/5.4/pl/pretty.lua suite build-asan check
}

stage_tsan() {
    one "configure with ThreadSanitizer" configure_in build-tsan --enable-werror --with-check --enable-sanitizers=thread CC=gcc CFLAGS="-O1 -g1"
    suite build-tsan check-threads
}

stage_fuzz() {
    one "configure the fuzzers" configure_in build-fuzz --enable-werror --enable-fuzzing CC=clang CFLAGS="-O1 -g1"
    one "fuzz each target for ${FUZZ_SECONDS:=5} s" make -C build-fuzz -s -j"$(nproc)" fuzz-run FUZZ_SECONDS="$FUZZ_SECONDS"
}

# As an ordinary user: a test that only passes as root, or writes into the sources, fails here.
distcheck() {
    local tmp user=
    tmp=$(mktemp -d) || return 1
    chmod 755 "$tmp"
    make -C build -s distdir && mv build/varve-[0-9]* "$tmp/varve" || return 1
    mkdir "$tmp/build" "$tmp/home"
    if [ "$(id -u)" = 0 ]; then
        chown -R nobody "$tmp"
        user="runuser -u nobody --"
    fi
    $user env HOME="$tmp/home" TMPDIR="$tmp" VV_QUICK=1 VV_CRASH_RUNS=20 \
        VV_DENIAL_LENGTHS=1 VV_DIFFERENTIAL_SEEDS=20 VV_SEEDS=2 VV_GROWTH_SEEDS=2 sh -c "
        cd '$tmp/build' && '$tmp/varve/configure' -q && make -s -j$jobs distcheck VERBOSE=1"
    local status=$?
    chmod -R u+w "$tmp"
    rm -rf "$tmp"
    return $status
}

stage_distcheck() {
    one "distcheck as an ordinary user" distcheck
}

stage_bench() {
    one "bench, scaled down" make -C build -s -j"$(nproc)" bench VV_BENCH_ROUNDS=3
}

stage_soak() {
    one "soak, scaled down" make -C build -s -j"$(nproc)" soak VV_SOAK_SECONDS=5 VV_FUZZ_BUILD="$PWD/build-fuzz" VV_FUZZ_SECONDS=1
}

mkdir -p "$logs"
say "Installing what is missing"
# shellcheck disable=SC2086 # lists of words
install_packages $build_packages $demo_packages $test_packages || exit 1
[ $# -gt 0 ] || set -- gcc clang asan tsan fuzz distcheck bench soak
for stage in "$@"; do
    if [ "$(type -t "stage_$stage")" != function ]; then
        echo "test.sh: no stage '$stage'; the stages are gcc clang asan tsan fuzz distcheck bench soak" >&2
        exit 2
    fi
    say "$stage"
    "stage_$stage"
done
printf '\n'
[ $skipped = 0 ] || echo "($skipped skipped: see the logs for why)"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
