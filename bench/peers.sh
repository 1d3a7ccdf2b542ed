#!/bin/sh
# What a call pair costs the host under Varve, uftrace and LTTng-UST, where these are installed: the same program,
# hooked by -finstrument-functions. The ratio is of wall time over the program without hooks, medians of interleaved
# runs, each recorder with its own settings; CPU time of the thread of the program stands beside it.
set -u
bin=${top_builddir:-.}/bench
dir=$(mktemp -d /var/tmp/varve-peers-XXXXXX) || exit 99
sessiond=
finish()
{
    [ -n "$sessiond" ] && lttng destroy varve-bench >/dev/null 2>&1
    [ -n "$sessiond" ] && [ -s "$dir/sessiond.pid" ] && kill "$(cat "$dir/sessiond.pid")" 2>/dev/null
    rm -rf "$dir"
}
trap finish EXIT

# Runs of each, and rounds of the program in a run: long enough that buffers fill, as they do in a real program.
runs=5
if [ "${VV_BENCH_ROUNDS:-15}" -lt 15 ]; then runs=1; else VV_BENCH_ROUNDS=60; fi
export VV_BENCH_ROUNDS

# keep NAME: the figures of a run go to the name's list.
keep() { sed -n 's/^\([0-9.]*\) ns a pair, \([0-9.]*\) by the wall.*/\2 \1/p' "$dir/run" >>"$dir/$1"; }
# median NAME FIELD
median() { sort -n -k "$2,$2" "$dir/$1" | awk -v f="$2" '{ v[NR] = $f } END { print v[int((NR + 1) / 2)] }'; }
# figure NAME FIELD: over the bare program, ns
figure() { echo "$(median "$1" "$2") $(median bare "$2")" | awk '{ print $1 - $2 }'; }

run_bare() { "$bin/peers_bare" 2>"$dir/run"; }
run_varve() { "$bin/peers" >/dev/null 2>"$dir/run"; }
run_uftrace()
{
    uftrace record --no-libcall --no-event -d "$dir/data" "$bin/peers_hooked" >"$dir/log" 2>"$dir/run" || return 1
    grep -i lost "$dir/log" "$dir/run" | sed 's/.*/  # &/'
    rm -rf "$dir/data"
}
# Buffers that hold the whole run: nothing is discarded, and nobody waits.
run_lttng()
{
    lttng create varve-bench --output="$dir/lttng" >"$dir/log" 2>&1 &&
        lttng enable-channel -u big --subbuf-size=32M --num-subbuf=16 >>"$dir/log" 2>&1 &&
        lttng enable-event -u -c big 'lttng_ust_cyg_profile_fast:*' >>"$dir/log" 2>&1 &&
        lttng start varve-bench >>"$dir/log" 2>&1 &&
        LD_PRELOAD=$hooks "$bin/peers_hooked" >/dev/null 2>"$dir/run" && lttng stop >"$dir/log" 2>&1 || return 1
    grep -i discarded "$dir/log" | sed 's/^/  # /'
    lttng destroy varve-bench >/dev/null 2>&1
    rm -rf "$dir/lttng"
}

peers=
if command -v uftrace >/dev/null; then peers="$peers uftrace"; else echo "uftrace is not installed: not compared"; fi
hooks=$(ls /usr/lib/*/liblttng-ust-cyg-profile-fast.so /usr/lib/liblttng-ust-cyg-profile-fast.so 2>/dev/null | head -1)
if command -v lttng >/dev/null && command -v lttng-sessiond >/dev/null && [ -n "$hooks" ]; then
    lttng-sessiond --daemonize --no-kernel --pidfile "$dir/sessiond.pid" >"$dir/log" 2>&1 && sessiond=1
fi
if [ -n "$sessiond" ]; then peers="$peers lttng"; else echo "LTTng-UST is not installed: not compared"; fi

while [ $runs -gt 0 ]; do
    runs=$((runs - 1))
    for name in bare varve $peers; do
        if run_$name; then
            keep $name
        elif [ $name = varve ] || [ $name = bare ]; then
            echo "recording failed or lost records"
            exit 1
        else
            echo "  $name could not record: $(tail -n 1 "$dir/log")"
            peers=$(echo "$peers" | sed "s/ $name//")
        fi
    done
done

printf 'hooked call pair over the bare one: wall time (CPU time), ns\n'
printf '  %-18s %7.1f (%.1f)\n' Varve "$(figure varve 1)" "$(figure varve 2)"
# report NAME TITLE LIMIT
report()
{
    awk -v title="$2" -v limit="$3" -v wall="$(figure "$1" 1)" -v cpu="$(figure "$1" 2)" -v varve="$(figure varve 1)" \
        -v varve_cpu="$(figure varve 2)" 'BEGIN {
        printf "  %-18s %7.1f (%.1f), %.1f times Varve (at least %s)%s; CPU time %.1f times\n", title, wall, cpu,
            wall / varve, limit, wall / varve < limit ? " MISSED" : "", cpu / varve_cpu }'
}
for name in $peers; do
    case $name in
    uftrace) report uftrace "$(uftrace --version | awk '{ print $1, $2 }')" 6 ;;
    lttng) report lttng "LTTng-UST $(lttng --version | sed -n 's/.*) \([0-9.]*\).*/\1/p')" 4 ;;
    esac
done
