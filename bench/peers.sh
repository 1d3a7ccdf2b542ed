#!/bin/bash
# What a call pair costs the host under Varve, uftrace and LTTng-UST, where these are installed: the same program,
# hooked by -finstrument-functions. The ratio is of wall time over the program without hooks, medians of interleaved
# runs, each recorder with its own settings; CPU time of the thread of the program stands beside it.
set -u
bin=${top_builddir:-.}/bench
dir=$(mktemp -d /var/tmp/varve-peers-XXXXXX) || exit 99
sessiond=
# LTTng's settings and sessions of this run alone, and no call of it that waits for ever.
export LTTNG_HOME=$dir
session=varve-bench-$$
lttng_within() { timeout -k 5 "$1" lttng "${@:2}"; }
# What was started here is ended here, and gone before the next run meets it.
finish()
{
    if [ -n "$sessiond" ]; then
        lttng_within 20 destroy --no-wait "$session" >/dev/null 2>&1
        kill "$sessiond" 2>/dev/null
        for _ in $(seq 100); do
            kill -0 "$sessiond" 2>/dev/null || break
            sleep 0.2
        done
        kill -9 "$sessiond" 2>/dev/null
    fi
    rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

# Runs of each, and rounds of the program in a run: long enough that buffers fill, as they do in a real program.
runs=5
if [ "${VV_BENCH_ROUNDS:-15}" -lt 15 ]; then runs=1; else VV_BENCH_ROUNDS=60; fi
export VV_BENCH_ROUNDS

# keep NAME: the figures of a run go to the name's list.
keep() { sed -n 's/^\([0-9.]*\) ns a pair, \([0-9.]*\) by the wall.*/\2 \1/p' "$dir/run" >>"$dir/$1.figures"; }
# median NAME FIELD
median() { sort -n -k "$2,$2" "$dir/$1.figures" | awk -v f="$2" '{ v[NR] = $f } END { print v[int((NR + 1) / 2)] }'; }
# figure NAME FIELD: over the bare program, ns
figure() { echo "$(median "$1" "$2") $(median bare "$2")" | awk '{ print $1 - $2 }'; }

run_bare() { "$bin/peers_bare" 2>"$dir/run"; }
run_varve() { "$bin/peers" >/dev/null 2>"$dir/run"; }
run_uftrace()
{
    timeout -k 5 300 uftrace record --no-libcall --no-event -d "$dir/data" "$bin/peers_hooked" >"$dir/log" \
        2>"$dir/run" || return 1
    grep -i lost "$dir/log" "$dir/run" | sed 's/.*/  # &/'
    rm -rf "$dir/data"
}
# Buffers that hold the whole run: nothing is discarded, and nobody waits. The program begins once they are there.
run_lttng()
{
    lttng_within 20 create "$session" --output="$dir/trace" >"$dir/log" 2>&1 &&
        lttng_within 20 enable-channel -u big --subbuf-size=32M --num-subbuf=16 >>"$dir/log" 2>&1 &&
        lttng_within 20 enable-event -u -c big 'lttng_ust_cyg_profile_fast:*' >>"$dir/log" 2>&1 &&
        lttng_within 20 start "$session" >>"$dir/log" 2>&1 &&
        timeout -k 5 300 env LTTNG_UST_REGISTER_TIMEOUT=60000 LD_PRELOAD="$hooks" "$bin/peers_hooked" >/dev/null \
            2>"$dir/run" &&
        lttng_within 60 stop >"$dir/log" 2>&1 || return 1
    grep -i discarded "$dir/log" | sed 's/^/  # /'
    lttng_within 60 destroy "$session" >"$dir/log" 2>&1 || return 1
    if [ "$(du -sk "$dir/trace" | cut -f 1)" -lt 1000 ]; then
        echo "nothing was recorded" >"$dir/log"
        return 1
    fi
    rm -rf "$dir/trace"
}

# The session daemon: ready for calls when the command is done. As root there is one for the machine.
start_lttng()
{
    if lttng_within 10 list >/dev/null 2>&1; then
        echo "a session daemon of LTTng runs already: not compared"
    elif timeout -k 5 20 lttng-sessiond --daemonize --no-kernel --pidfile "$dir/sessiond.pid" >"$dir/log" 2>&1; then
        sessiond=$(cat "$dir/sessiond.pid")
        peers="$peers lttng"
    else
        echo "LTTng's session daemon does not start: not compared: $(tail -n 1 "$dir/log")"
    fi
}

peers=
if command -v uftrace >/dev/null; then peers="$peers uftrace"; else echo "uftrace is not installed: not compared"; fi
hooks=$(ls /usr/lib/*/liblttng-ust-cyg-profile-fast.so /usr/lib/liblttng-ust-cyg-profile-fast.so 2>/dev/null | head -1)
if command -v lttng >/dev/null && command -v lttng-sessiond >/dev/null && [ -n "$hooks" ]; then
    start_lttng
else
    echo "LTTng-UST is not installed: not compared"
fi

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
