#!/bin/sh
# Profilers that come to a running varve-lua and go: what lives is enumerated, the rest told, and nothing in between is
# missing; the interpreter goes on while they do.
dir=$top_srcdir/tests/hosts/lua/events
build=$(cd "$top_builddir" && pwd)
plugin=$build/tests/hosts/lua/.libs/log_plugin.so
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset LUA_INIT LUA_INIT_5_4 LUA_PATH LUA_PATH_5_4 BAML_PROFILE VARVE_PROFILER
export BAML_PROFILE_DIR="$tmp/store"
n=0 bad=0
result() { # STATUS TEXT
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; bad=1; fi
}
words=modules,functions,unloads,threads,calls,suspensions
ATTACH="$build/varve attach PID $plugin=$tmp/log,$words >/dev/null" \
    DETACH="$build/varve detach PID log_plugin >/dev/null" "$build/varve-lua" "$dir/attached.lua" 2>"$tmp/err"
[ $? = 0 ] && diff "$dir/attached.want" "$tmp/log" >"$tmp/diff" && [ ! -s "$tmp/err" ]
status=$?
[ $status = 0 ] || sed 's/^/# /' "$tmp/diff" "$tmp/err"
result $status "attached in mid-run, and detached"

# The interpreter runs on while profilers come and go.
rounds=${VV_ATTACH_ROUNDS:-8}
cp "$plugin" "$tmp/quiet.so" # where the recorder is off there must be another to attach to
cat >"$tmp/churn.sh" <<END
(
    i=0
    while [ \$i -lt $rounds ]; do
        "$build/varve" attach \$1 "$plugin=$tmp/holes,check,$words,exceptions" || exit
        "$build/varve" detach \$1 log_plugin || exit
        i=\$((i + 1))
    done
) >"$tmp/churn.out" 2>&1
echo \$? >"$tmp/done.new"
mv "$tmp/done.new" "$tmp/done"
END
for profile in 1 0; do
    rm -rf "$tmp/holes" "$tmp/done" "$tmp/store"
    BAML_PROFILE=$profile CHURN="sh $tmp/churn.sh PID &" DONE=$tmp/done \
        VARVE_PROFILER="$tmp/quiet.so=/dev/null,domains" \
        "$build/varve-lua" "$dir/churning.lua" 2>"$tmp/err"
    [ $? = 0 ] && [ "$(cat "$tmp/done")" = 0 ] && [ "$(grep -c '^holes 0$' "$tmp/holes")" = "$rounds" ] &&
        [ "$(grep -vc '^holes 0$' "$tmp/holes")" = 0 ]
    status=$?
    [ $status = 0 ] || sed 's/^/# /' "$tmp/err" "$tmp/churn.out" "$tmp/holes" | head -20
    result $status "$rounds profilers attached and detached under load, recorder $profile"
done

# What can't be loaded is told, and the script runs.
echo 'print("ran")' >"$tmp/q.lua"
out=$("$build/varve-lua" --profiler "$tmp/q.lua" "$tmp/q.lua" 2>"$tmp/err")
[ "$out" = ran ] && [ "$(wc -l <"$tmp/err")" -eq 1 ] &&
    grep -q '^varve: .*q\.lua: not a shared object: .*; going on without it$' "$tmp/err"
status=$?
[ $status = 0 ] || sed 's/^/# /' "$tmp/err"
result $status "a profiler that is none"

# A store that can't be opened: its path stands once in the line that is asked for.
echo >"$tmp/file"
BAML_PROFILE_DIR=$tmp/file VARVE_STATUS=1 "$build/varve-lua" "$tmp/q.lua" >/dev/null 2>"$tmp/err"
[ "$(grep -o "$tmp/file" "$tmp/err" | wc -l)" -eq 1 ]
status=$?
[ $status = 0 ] || sed 's/^/# /' "$tmp/err"
result $status "a file where the store should be"
echo "1..$n"
exit $bad
