#!/bin/bash
# What is recorded of errors: each errors/NAME.lua is a row of the table in docs/lua-host.md, "Errors". Its evidence (see
# evidence.py) must be errors/NAME.expected, which was worked out by hand; `*` matches anything.
dir=$top_srcdir/tests/hosts/lua
if ! command -v python3 >/dev/null; then
    echo "1..0 # SKIP needs python3"
    exit 0
fi
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset LUA_INIT LUA_INIT_5_4 LUA_PATH LUA_PATH_5_4 BAML_PROFILE
varve=$(cd "$top_builddir" && pwd)/varve lua=$(cd "$top_builddir" && pwd)/varve-lua
export BAML_PROFILE_DIR=$tmp/store
n=0 bad=0
matches() { # WANTED GOT: line by line
    local want got
    while IFS= read -r want <&3; do
        IFS= read -r got <&4 || return 1
        # shellcheck disable=SC2053
        [[ $got == $(sed 's/[][?\\]/\\&/g' <<<"$want") ]] || return 1
    done 3<"$1" 4<"$2"
    [ "$(wc -l <"$1")" = "$(wc -l <"$2")" ]
}
run() { # SCRIPT
    if [ "$1" = memory.lua ]; then (ulimit -v 1000000 && exec "$lua" "$1"); else "$lua" "$1"; fi
}
sanitized=false
grep -q __asan_init "$top_builddir/.libs/varve-lua" 2>/dev/null && sanitized=true
cd "$dir/errors" || exit 1
for script in *.lua; do
    n=$((n + 1)) name=${script%.lua}
    if $sanitized && [[ $name = memory || $name = deep ]]; then
        echo "ok $n - $name # SKIP not with a sanitizer: a limit to memory, a million calls"
        continue
    fi
    rm -rf "$tmp/store"
    run "$script" >"$tmp/out" 2>"$tmp/err"
    "$varve" dump --store "$tmp/store" >"$tmp/dump" &&
        python3 "$dir/evidence.py" "$tmp/dump" "$tmp/store" brief >"$tmp/got"
    if matches "$name.expected" "$tmp/got" && ! grep -q "Sanitizer" "$tmp/err"; then
        echo "ok $n - $name"
    else
        bad=1
        diff "$name.expected" "$tmp/got" | sed 's/^/# /'
        sed 's/^/# /' "$tmp/err"
        echo "not ok $n - $name"
    fi
done
n=$((n + 1))
missing=$(for script in *.lua; do
    grep -q "| [^|]*\`${script%.lua}\`[^|]* |$" "$top_srcdir/docs/lua-host.md" || echo "# ${script%.lua}"
done)
if [ -z "$missing" ]; then
    echo "ok $n - each is in the table"
else
    bad=1
    echo "$missing"
    echo "not ok $n - each is in the table"
fi
echo "1..$n"
exit $bad
