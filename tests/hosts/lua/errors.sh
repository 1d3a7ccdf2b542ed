#!/bin/bash
# What is recorded of errors: each errors/NAME.lua is a row of the table in docs/lua-host.md, "Errors". Its evidence (see
# evidence.py) must be errors/NAME.expected, which was worked out by hand; `*` matches anything.
. "$top_srcdir/tests/hosts/lua/recorded.sh"
matches() { # WANTED GOT: line by line
    local want got
    while IFS= read -r want <&3; do
        IFS= read -r got <&4 || return 1
        # shellcheck disable=SC2053
        [[ $got == $want ]] || return 1
    done 3< <(sed 's/[][?\\]/\\&/g' "$1") 4<"$2"
    [ "$(wc -l <"$1")" = "$(wc -l <"$2")" ]
}
run() { # SCRIPT
    if [ "$1" = memory.lua ]; then (ulimit -v 1000000 && exec "$lua" "$1"); else "$lua" "$1"; fi
}
sanitized=false
grep -q __asan_init "$lua" && sanitized=true
cd "$dir/errors" || exit 1
for script in *.lua; do
    name=${script%.lua}
    if $sanitized && [[ $name = memory || $name = deep ]]; then
        n=$((n + 1))
        echo "ok $n - $name # SKIP not with a sanitizer: a limit to memory, a million calls"
        continue
    fi
    rm -rf "$tmp/store"
    run "$script" >"$tmp/out" 2>"$tmp/err"
    evidence brief && matches "$name.expected" "$tmp/got" && ! grep -q "Sanitizer" "$tmp/err"
    status=$?
    diff "$name.expected" "$tmp/got" >"$tmp/diff"
    result $status "$name" "$tmp/diff" "$tmp/err"
done
for script in *.lua; do
    grep -q "| [^|]*\`${script%.lua}\`[^|]* |$" "$top_srcdir/docs/lua-host.md" || echo "${script%.lua}"
done >"$tmp/missing"
[ ! -s "$tmp/missing" ]
result $? "each is in the table" "$tmp/missing"
echo "1..$n"
exit $bad
