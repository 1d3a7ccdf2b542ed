#!/bin/sh
# What a call pair costs the host under Varve, uftrace and LTTng-UST, where these are installed: the same program, hooked by
# -finstrument-functions; CPU time of its thread over the program without hooks.
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
cost() { sed -n 's/^\([0-9.]*\) ns a pair.*/\1/p' "$1"; }
"$bin/peers_bare" 2>"$dir/bare" || exit 1
"$bin/peers" >/dev/null 2>"$dir/varve" || { echo "recording failed or lost records"; exit 1; }
bare=$(cost "$dir/bare")
varve=$(cost "$dir/varve")

# report NAME LIMIT: the peer's cost over ours
report()
{
    awk -v name="$1" -v limit="$2" -v bare="$bare" -v varve="$varve" -v peer="$(cost "$dir/peer")" 'BEGIN {
        ratio = (peer - bare) / (varve - bare)
        printf "  %-22s %7.1f ns a pair, %.1f times Varve (at least %s)%s\n", name, peer - bare, ratio, limit,
            ratio < limit ? " MISSED" : "" }'
}
awk -v bare="$bare" -v varve="$varve" 'BEGIN {
    printf "hooked call pair over the bare %.1f ns\n  %-22s %7.1f ns a pair\n", bare, "Varve", varve - bare }'

if command -v uftrace >/dev/null; then
    if uftrace record -b 16M --no-libcall --no-event -d "$dir/uftrace" "$bin/peers_hooked" >"$dir/log" 2>"$dir/peer"; then
        report "$(uftrace --version | awk '{ print $1, $2 }')" 6
        grep -i lost "$dir/log" "$dir/peer" | sed 's/^/  # /'
    else
        echo "  uftrace could not record"
    fi
else
    echo "  uftrace is not installed: not compared"
fi

hooks=$(ls /usr/lib/*/liblttng-ust-cyg-profile-fast.so /usr/lib/liblttng-ust-cyg-profile-fast.so 2>/dev/null | head -1)
if command -v lttng >/dev/null && command -v lttng-sessiond >/dev/null && [ -n "$hooks" ]; then
    # Buffers that hold the whole run: nothing is discarded, and nobody waits.
    if lttng-sessiond --daemonize --no-kernel --pidfile "$dir/sessiond.pid" >"$dir/log" 2>&1 && sessiond=1 &&
        lttng create varve-bench --output="$dir/lttng" >>"$dir/log" 2>&1 &&
        lttng enable-channel -u big --subbuf-size=32M --num-subbuf=8 >>"$dir/log" 2>&1 &&
        lttng enable-event -u -c big 'lttng_ust_cyg_profile_fast:*' >>"$dir/log" 2>&1 &&
        lttng start varve-bench >>"$dir/log" 2>&1 &&
        LD_PRELOAD=$hooks "$bin/peers_hooked" >/dev/null 2>"$dir/peer" && lttng stop >"$dir/stop" 2>&1; then
        report "LTTng-UST $(lttng --version | sed -n 's/.*) \([0-9.]*\).*/\1/p')" 4
        grep -i discarded "$dir/stop" | sed 's/^/  # /'
    else
        echo "  LTTng-UST could not record: $(tail -1 "$dir/log")"
    fi
else
    echo "  LTTng-UST is not installed: not compared"
fi
