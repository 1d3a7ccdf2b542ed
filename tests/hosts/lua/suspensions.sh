#!/bin/sh
# Each place where a host charges a wait is a row of the table in docs/lua-host.md, by file and function, and each row
# is such a place.
set -u
top=${top_srcdir:-.}
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
# What calls the accumulator is a helper; the points are its callers (or itself, where it has none).
for file in "$top"/hosts/*/*.c; do
    awk -v name="${file##*/}" '
        FNR == 1 { pass++ }
        /^[a-z].*\(/ && !/;$/ { fn = $0; sub(/\(.*/, "", fn); sub(/.*[ *]/, "", fn); next }
        pass == 1 && /vl\.suspend\(/ { helper[fn] = 0 }
        pass == 2 { for (h in helper) if (fn != h && $0 ~ "(^|[^a-z_])" h "\\(") { helper[h]++; print name ":" fn } }
        END { for (h in helper) if (!helper[h]) print name ":" h }
    ' "$file" "$file"
done | sort -u >"$dir/used"
sed -n 's/^| `\([a-z_]*\.c:[a-z_]*\)` |.*/\1/p' "$top/docs/lua-host.md" | sort -u >"$dir/listed"
n=0
failed=0
result() { # status description
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; failed=1; fi
}
[ -s "$dir/used" ]
result $? "the hosts charge waits somewhere"
comm -23 "$dir/used" "$dir/listed" >"$dir/missing"
[ ! -s "$dir/missing" ]
result $? "each suspension point is listed"
sed 's/^/# not listed: /' "$dir/missing"
comm -13 "$dir/used" "$dir/listed" >"$dir/stale"
[ ! -s "$dir/stale" ]
result $? "each listed point exists"
sed 's/^/# not in the source: /' "$dir/stale"
echo "1..$n"
exit $failed
