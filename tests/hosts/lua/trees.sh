#!/bin/sh
# Each programs/NAME.lua is recorded over a stand-in for libvarve; its calling-context tree must be
# programs/NAME.tree, worked out by hand. In a tree `@n` is the line of the call, `~` a thread of its own; see
# fake_varve.c.
dir=$top_srcdir/tests/hosts/lua/programs
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset LUA_INIT LUA_INIT_5_4 LUA_PATH LUA_PATH_5_4 BAML_PROFILE
n=0 bad=0
compare() { # SCRIPT LAYOUT
    n=$((n + 1))
    name=$(basename "$1" .lua)
    VARVE_LUA_LAYOUT=$2 VARVE_FAKE_TREE=$tmp/tree "$top_builddir/varve-lua-tree" "$1" >"$tmp/out" 2>&1
    if diff "$dir/$name.tree" "$tmp/tree" >"$tmp/diff"; then
        echo "ok $n - tree of $name, layout $2"
    else
        bad=$((bad + 1))
        sed 's/^/# /' "$tmp/diff" "$tmp/out"
        echo "not ok $n - tree of $name, layout $2"
    fi
}
for script in "$dir"/*.lua; do
    compare "$script" private
    case $script in
    */tail*) ;; # the public interface doesn't tell where a tail call stood
    *) compare "$script" public ;;
    esac
done
echo "1..$n"
[ "$bad" = 0 ]
