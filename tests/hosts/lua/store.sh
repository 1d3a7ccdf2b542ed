#!/bin/sh
# The scripts of programs/ through ring, epoch and store: as many calls, errors and exits as their trees have,
# complete evidence, and self times that add up to the root's inclusive time.
dir=$top_srcdir/tests/hosts/lua/programs
if ! command -v jq >/dev/null; then
    echo "1..0 # SKIP needs jq"
    exit 0
fi
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset LUA_INIT LUA_INIT_5_4 LUA_PATH LUA_PATH_5_4 BAML_PROFILE
n=0 bad=0
# What ended how, summed over a tree; the inclusive time of the root, and self times, must be equal.
from_tree() {
    awk '/^total/ { print "calls", $2 }
         / ok=| err=| cancelled=| exited=/ && !/^threads/ { for (i = 1; i <= NF; i++) if (split($i, p, "=") == 2) sum[p[1]] += p[2] }
         END { print "err", sum["err"] + 0; print "cancelled", sum["cancelled"] + 0 }' "$1"
}
for script in "$dir"/*.lua; do
    n=$((n + 1))
    name=$(basename "$script" .lua)
    rm -rf "$tmp/store"
    BAML_PROFILE_DIR=$tmp/store "$top_builddir/varve-lua" "$script" >"$tmp/out" 2>&1
    from_tree "$dir/$name.tree" >"$tmp/want"
    "$top_builddir/varve" top --json -n 1000 --store "$tmp/store" >"$tmp/top" 2>"$tmp/err"
    jq -r '"calls \([.items[].calls] | add)", "err \([.items[].errors] | add)", "cancelled \([.items[].cancelled] | add)"' \
        "$tmp/top" >"$tmp/got"
    self=$(jq '[.items[].self_ns] | add' "$tmp/top")
    root=$(jq '.items[] | select(.definition_key == "lua") | .inclusive_ns' "$tmp/top")
    if diff "$tmp/want" "$tmp/got" >"$tmp/diff" && [ "$(jq -r .evidence.verdict "$tmp/top")" = complete ] && [ "$self" = "$root" ]; then
        echo "ok $n - $name in the store"
    else
        sed 's/^/# /' "$tmp/diff" "$tmp/out" "$tmp/err"
        echo "# self $self, root $root"
        echo "not ok $n - $name in the store"
        bad=1
    fi
done
# With the standard descriptors closed, what a script prints is lost, as ever, and never lands in the store's files.
n=$((n + 1))
rm -rf "$tmp/store"
echo 'for i = 1, 5000 do print("STRAY") io.stderr:write("STRAY") end' >"$tmp/prints.lua"
BAML_PROFILE_DIR=$tmp/store BAML_PROFILE_PUBLISH_INTERVAL_MS=1 "$top_builddir/varve-lua" "$tmp/prints.lua" <&- >&- 2>&-
if [ $? = 0 ] && [ -d "$tmp/store/streams" ] && ! grep -rq STRAY "$tmp/store"; then
    echo "ok $n - closed standard descriptors"
else
    grep -rl STRAY "$tmp/store" | sed 's/^/# /'
    echo "not ok $n - closed standard descriptors"
    bad=1
fi
echo "1..$n"
exit $bad
