#!/bin/sh
# What a profiler is told by varve-lua: each events/NAME.lua, whose first line says of what, must give the log
# events/NAME.expected, which was worked out by hand (NAME.public by the public layout). Then: counts are the
# recorder's; stacks are asked for from a signal handler.
dir=$top_srcdir/tests/hosts/lua/events
plugin=$(cd "$top_builddir" && pwd)/tests/hosts/lua/.libs/log_plugin.so
. "$top_srcdir/tests/tools/lua.sh"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset LUA_INIT LUA_INIT_5_4 LUA_PATH LUA_PATH_5_4 BAML_PROFILE VARVE_PROFILER
export BAML_PROFILE_DIR="$tmp/store"
n=0 bad=0
result() { # STATUS TEXT
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; bad=1; fi
}
run() { # WORDS SCRIPT: the log in $tmp/log
    rm -rf "$tmp/log" "$tmp/store"
    "$lua" --profiler="$plugin=$tmp/log,$1" "$2" >"$tmp/out" 2>"$tmp/err"
}
compare() { # EXPECTED TEXT
    diff "$1" "$tmp/log" >"$tmp/diff" && ! grep -q '^varve: \|Sanitizer' "$tmp/err"
    status=$?
    [ $status = 0 ] || sed 's/^/# /' "$tmp/diff" "$tmp/err"
    result $status "$2"
}

for expected in "$dir"/*.expected; do
    script=${expected%.expected}.lua
    name=$(basename "$script" .lua)
    words=$(sed -n '1s/^-- //p' "$script")
    BAML_PROFILE=0 run "$words" "$script"
    compare "$expected" "events of $name"
    case $words in
    main,*) ;;
    *)
        run "$words" "$script"
        compare "$expected" "events of $name beside the recorder"
        ;;
    esac
    case $name in
    close | collections | errors | forced)
        public=${expected%.expected}.public
        [ -f "$public" ] || public=$expected
        VARVE_LUA_LAYOUT=public BAML_PROFILE=0 run "$words" "$script"
        compare "$public" "events of $name by the public layout"
        ;;
    esac
done

# By VARVE_PROFILER too; two at once are told the same.
cp "$plugin" "$tmp/second.so"
rm -f "$tmp/log"
words=$(sed -n '1s/^-- //p' "$dir/coroutines.lua")
BAML_PROFILE=0 VARVE_PROFILER="$plugin=$tmp/log,$words:$tmp/second.so=$tmp/log2,$words" \
    "$lua" "$dir/coroutines.lua" >"$tmp/out" 2>"$tmp/err"
compare "$dir/coroutines.expected" "events of VARVE_PROFILER's first"
mv "$tmp/log2" "$tmp/log"
compare "$dir/coroutines.expected" "events of VARVE_PROFILER's second"

value() { sed -n "s/^$1 //p" "$tmp/log"; }
# A session that is not done in time is left as it is, which is no leak.
asan_options=${ASAN_OPTIONS:-}
export ASAN_OPTIONS="${asan_options:+$asan_options:}detect_leaks=0"
run tally,functions,threads,calls,exceptions "$dir/overflow.lua"
ASAN_OPTIONS=$asan_options
[ "$(value enter)" -gt 100000 ] && [ "$(value enter)" = "$(value leave)" ] && [ "$(value holes)" = 0 ] &&
    [ "$(value throw)" -ge 6 ] && [ ! -s "$tmp/err" ]
status=$?
[ $status = 0 ] || sed 's/^/# /' "$tmp/log" "$tmp/err" | head -20
result $status "overflows: as many calls end as begin"

run collections,allocations "$dir/automatic.lua"
awk '/^gc\+/ { if (open++) bad = 1; seen[$2]++ }
     /^gc-/ { if (--open) bad = 1 }
     END { exit bad || open || seen[0] < 3 || seen[1] < 3 }' "$tmp/log" && [ "$(value holes)" = 0 ]
status=$?
[ $status = 0 ] || sed 's/^/# /' "$tmp/log" "$tmp/err" | head -20
result $status "collections that come by themselves begin and end, and the bytes add up"

if command -v jq >/dev/null; then
    for script in "$top_srcdir"/tests/hosts/lua/programs/*.lua; do
        run tally,functions,threads,calls "$script"
        "$top_builddir/varve" top --json -n 1000 --store "$tmp/store" 2>"$tmp/err" |
            jq -r '.items[] | "calls \(.definition_key) \(.calls)"' | sort >"$tmp/want"
        grep '^calls ' "$tmp/log" | sort >"$tmp/got"
        [ -s "$tmp/want" ] && diff "$tmp/want" "$tmp/got" >"$tmp/diff" && [ "$(value holes)" = 0 ]
        status=$?
        [ $status = 0 ] || sed 's/^/# /' "$tmp/diff" "$tmp/err"
        result $status "calls of $(basename "$script") are those of the recorder"
    done
fi

samples=400
for profile in 0 1; do
    for layout in private public; do
        rm -rf "$tmp/log" "$tmp/store"
        BAML_PROFILE=$profile VARVE_LUA_LAYOUT=$layout LOG_PLUGIN=$plugin LOG_SAMPLES=$samples \
            "$lua" --profiler="$plugin=$tmp/log,sample,functions,domains" "$dir/sampled.lua" \
            >"$tmp/out" 2>"$tmp/err"
        [ $? = 0 ] && grep -q "^samples [4-9][0-9]* disagreeing 0\$" "$tmp/log" &&
            ! grep -v '^samples \|^VARVE_OK \|^VARVE_E_ASYNC_UNSAFE \|^VARVE_E_UNAVAILABLE \|^holes 0$' "$tmp/log"
        status=$?
        [ $status = 0 ] || sed 's/^/# /' "$tmp/log" "$tmp/err" | head -20
        result $status "stacks from a signal handler, recorder $profile, layout $layout"
    done
done

# With nobody to tell, nothing is owned that the other interpreter does not own.
if command -v lua5.4 >/dev/null; then
    cat >"$tmp/owned.lua" <<'END'
for line in io.lines("/proc/self/status") do print(line:match("^Threads:.*")) end
os.execute("ls /proc/$PPID/fd; ls /proc/$PPID/task | wc -l")
END
    lua5.4 "$tmp/owned.lua" >"$tmp/want" 2>&1
    BAML_PROFILE=0 "$lua" "$tmp/owned.lua" >"$tmp/got" 2>&1
    diff "$tmp/want" "$tmp/got" >"$tmp/diff"
    status=$?
    [ $status = 0 ] || sed 's/^/# /' "$tmp/diff"
    result $status "switched off: no thread, no descriptor"
fi
echo "1..$n"
exit $bad
