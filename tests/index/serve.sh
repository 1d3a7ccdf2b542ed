#!/bin/bash
# `varve serve` and the commands answer the same with an index, without one, and with a bad one. Speaks TAP.
set -u
for tool in curl tar cmp; do
    command -v $tool >/dev/null || { echo "1..0 # SKIP no $tool"; exit 0; }
done
varve=$top_builddir/varve
dir=$(mktemp -d)
finish()
{
    stop_all
    rm -rf "$dir"
}
trap finish EXIT
unset NO_COLOR BAML_PROFILE_DIR
. "$top_srcdir/tests/tools/serving.sh"
XDG_CACHE_HOME=$dir/cache
export XDG_CACHE_HOME

# Everything that a server says of its store, in one file.
answers()
{
    for what in executions 'executions?q=a&limit=2' streams executions/latest 'flame?execution=latest' \
        'functions?execution=latest' 'executions/latest~1'; do
        curl -s -m 60 "$url/api/v1/$what"
        echo
    done >"$1"
}

# same NAME ARGUMENT...: a server with these arguments answers what one without an index does.
same()
{
    local name=$1
    shift
    start "$@"
    answers "$dir/got"
    stop
    cmp -s "$dir/want" "$dir/got"
    ok "$name"
}

for store in demo-store damaged-1 damaged-4 damaged-7; do
    mkdir "$dir/$store"
    tar -xf "$top_srcdir/tests/fixtures/$store.tar" -C "$dir/$store"
    root=$(find "$dir/$store" -name streams -type d | head -n 1)
    root=${root%/streams}
    start --no-index "$root"
    answers "$dir/want"
    stop
    [ ! -e "$dir/cache" ] || [ "$store" != demo-store ]
    ok "$store: --no-index leaves no trace"
    grep -q '"items":\[{' "$dir/want"
    ok "$store: there is something to answer"
    same "$store: with a new index" "$root"
    same "$store: with a filled index" "$root"
    same "$store: in memory" --index :memory: "$root"
    same "$store: at a place of one's own" --index "$dir/$store.index" "$root"
    for verb in "ls --store $root" "show latest --store $root" "top latest --store $root"; do
        # shellcheck disable=SC2086 # words
        "$varve" $verb --json >"$dir/plain" 2>/dev/null
        # shellcheck disable=SC2086
        "$varve" $verb --json --index "$dir/$store.index" >"$dir/indexed" 2>/dev/null
        cmp -s "$dir/plain" "$dir/indexed"
        ok "$store: varve ${verb%% *} --index"
    done
done

# From here on the last store, whose answers are wanted, and its index.
index=$dir/own.index
same "an index of another store" --index "$dir/demo-store.index" "$root"
"$varve" ls --store "$root" --index "$index" >/dev/null 2>&1
for at in 0 20 100 4096 5000 8192 9000 12288; do
    printf 'damage damage damage' | dd of="$index" bs=1 seek=$at conv=notrunc 2>/dev/null
    same "damaged at $at" --index "$index" "$root"
    rm -f "$index"*
    "$varve" ls --store "$root" --index "$index" >/dev/null 2>&1
done
: >"$dir/notes.txt"
for _ in 1 2 3 4 5 6 7 8 9; do echo "my notes" >>"$dir/notes.txt"; done
cp "$dir/notes.txt" "$dir/notes.copy"
same "a text named as the index" --index "$dir/notes.txt" "$root"
cmp -s "$dir/notes.txt" "$dir/notes.copy"
ok "which stays what it was"
[ "$(grep -c '^varve: index: .*no index of Varve' "$dir/err")" = 1 ]
ok "and one line says so"
XDG_CACHE_HOME=/proc/none same "no place for a cache" "$root"
[ "$(grep -c '^varve: index: ' "$dir/err")" = 1 ]
ok "one line says so"

start "$root"
first=$server first_url=$url
start "$root"
answers "$dir/got"
cmp -s "$dir/want" "$dir/got"
ok "a second server on the same index"
url=$first_url
answers "$dir/got"
cmp -s "$dir/want" "$dir/got"
ok "and the first"
stop
server=$first
stop
for _ in 1 2 3 4 5; do
    rm -f "$dir"/cache/varve/*
    start "$root"
    curl -s -m 60 "$url/api/v1/executions" >/dev/null
    stop KILL
    same "after a kill" "$root"
done
"$varve" serve --index x --no-index "$root" >/dev/null 2>&1
[ $? = 2 ]
ok "--index and --no-index exclude each other"
echo "1..$n"
exit $failed
