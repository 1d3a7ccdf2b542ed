#!/bin/sh
# `varve dump` against the fixtures' documents, in every form a store may come in, and its behaviour on bad input.
fixtures=$top_srcdir/tests/fixtures
varve=$top_builddir/varve
tmp=$(mktemp -d) || exit 99
trap 'chmod -R u+rwX "$tmp"; rm -rf "$tmp"' EXIT
unset BAML_PROFILE_DIR

if ! command -v python3 >/dev/null; then
    echo "1..0 # SKIP no python3 to compare JSON with exact integers"
    exit 0
fi

count=0
ok() { # STATUS NAME
    count=$((count + 1))
    if [ "$1" = 0 ]; then echo "ok $count - $2"; else echo "not ok $count - $2"; fi
}

# same A B: the two documents are equal; numbers keep all their digits.
same() {
    python3 -c '
import json, sys
with open(sys.argv[1]) as a, open(sys.argv[2]) as b:
    sys.exit(json.load(a) != json.load(b))' "$1" "$2"
}

# dumps STORE DOCUMENT NAME
dumps() {
    "$varve" dump "$1" >"$tmp/out.json" 2>"$tmp/err" && [ ! -s "$tmp/err" ] && same "$tmp/out.json" "$2"
    ok $? "$3"
}

# fails STATUS PATTERN NAME COMMAND...: that exit status, nothing on standard output, one line that matches.
fails() {
    want=$1 pattern=$2 name=$3
    shift 3
    "$@" >"$tmp/out" 2>"$tmp/err"
    status=$?
    [ $status = "$want" ] && [ ! -s "$tmp/out" ] && [ "$(wc -l <"$tmp/err")" = 1 ] && grep -q "$pattern" "$tmp/err"
    result=$?
    [ $result = 0 ] || sed 's/^/# /' "$tmp/err"
    ok $result "$name"
}

for name in demo-store damaged-1 damaged-2 damaged-3 damaged-4 damaged-5 damaged-6 damaged-7; do
    dumps "$fixtures/$name.tar" "$fixtures/$name.json" "$name.tar"
done

mkdir "$tmp/d" && tar -xf "$fixtures/damaged-5.tar" -C "$tmp/d"
want=$fixtures/damaged-5.json
dumps "$tmp/d/.baml/profiles-v1" "$want" "a directory: the root"
dumps "$tmp/d/.baml/profiles-v1/" "$want" "a directory: the root with a slash"
dumps "$tmp/d/.baml" "$want" "a directory: .baml"
dumps "$tmp/d" "$want" "a directory: what holds .baml"
"$varve" dump --store "$tmp/d" >"$tmp/out.json" && same "$tmp/out.json" "$want"
ok $? "--store"
(cd "$tmp/d/.baml/profiles-v1" && "$varve" dump . >"$tmp/out.json") && same "$tmp/out.json" "$want"
ok $? "the working directory itself"
mkdir "$tmp/d/deeper"
(cd "$tmp/d/deeper" && "$varve" dump >"$tmp/out.json") && same "$tmp/out.json" "$want"
ok $? "found above the working directory"
BAML_PROFILE_DIR=$tmp/d/.baml/profiles-v1 "$varve" dump >"$tmp/out.json" && same "$tmp/out.json" "$want"
ok $? "found by BAML_PROFILE_DIR"

gzip -c "$fixtures/damaged-5.tar" >"$tmp/s.tar.gz"
dumps "$tmp/s.tar.gz" "$want" "tar.gz"
if command -v zstd >/dev/null; then
    zstd -q "$fixtures/damaged-5.tar" -o "$tmp/s.tar.zst"
    dumps "$tmp/s.tar.zst" "$want" "tar.zst"
fi
python3 -c '
import os, sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as z:
    for at, dirs, files in os.walk(sys.argv[2]):
        for name in dirs + files:
            path = os.path.join(at, name)
            z.write(path, os.path.relpath(path, sys.argv[2]))' "$tmp/s.zip" "$tmp/d"
dumps "$tmp/s.zip" "$want" "zip"
tar -cf "$tmp/root.tar" -C "$tmp/d/.baml" profiles-v1
dumps "$tmp/root.tar" "$want" "a tar of profiles-v1 alone"
tar -cf "$tmp/inner.tar" -C "$tmp/d/.baml/profiles-v1" streams cas
dumps "$tmp/inner.tar" "$want" "a tar of what a root holds"
tar -cf "$tmp/dot.tar" -C "$tmp/d/.baml/profiles-v1" .
dumps "$tmp/dot.tar" "$want" "a tar of dot paths"
tar -cf "$tmp/deep.tar" -C "$tmp" d
dumps "$tmp/deep.tar" "$want" "a tar with the store further down"

# A reader writes nothing into a store; the lease beside it may be made.
find "$tmp/d/.baml/profiles-v1" -printf '%P %s %T@ %C@\n' | sort >"$tmp/before"
rm -f "$tmp/d/.baml/profiles-v1.lock"
dumps "$tmp/d" "$want" "the lease file is missing"
find "$tmp/d/.baml/profiles-v1" -printf '%P %s %T@ %C@\n' | sort >"$tmp/after"
cmp -s "$tmp/before" "$tmp/after"
ok $? "the store is untouched"
rm -f "$tmp/d/.baml/profiles-v1.lock"
chmod -R a-w "$tmp/d"
dumps "$tmp/d" "$want" "a store without write permission"
if [ "$(id -u)" != 0 ]; then
    [ ! -e "$tmp/d/.baml/profiles-v1.lock" ]
    ok $? "no lease is made where the parent is read-only"
fi
chmod -R u+w "$tmp/d"
rm -f "$tmp/d/.baml/profiles-v1.lock"
mkfifo "$tmp/d/.baml/profiles-v1.lock"
dumps "$tmp/d" "$want" "a FIFO in place of the lease"

if [ "$(id -u)" != 0 ]; then
    mkdir "$tmp/u" && tar -xf "$fixtures/damaged-4.tar" -C "$tmp/u"
    chmod 000 "$tmp"/u/.baml/profiles-v1/streams/*/data/00000000000000000003.bamldata
    "$varve" dump "$tmp/u" >"$tmp/out.json" && python3 -c '
import json, sys
with open(sys.argv[1]) as f:
    found = [e.get("error") for e in json.load(f)["streams"][0]["executions"]]
sys.exit(found != [None, None, "Io", "Io", "Io", None, None])' "$tmp/out.json"
    ok $? "an unreadable data segment"
    chmod 000 "$tmp"/u/.baml/profiles-v1/streams/*/meta/00000000000000000002.bamlmeta
    "$varve" dump "$tmp/u" | grep -q '"error":"Io"}]}'
    ok $? "an unreadable meta segment"
fi
TMPDIR=/nonexistent "$varve" dump "$fixtures/damaged-5.tar" >"$tmp/out.json" && same "$tmp/out.json" "$want"
ok $? "an archive without \$TMPDIR"

mkdir -p "$tmp/empty/.baml/profiles-v1"
echo '{"streams": []}' >"$tmp/empty.json"
dumps "$tmp/empty" "$tmp/empty.json" "a store without streams"
[ ! -e "$tmp/empty/.baml/profiles-v1.lock" ]
ok $? "no lease is made for what is no store yet"

fails 5 "no store at .*record" "a missing store" "$varve" dump "$tmp/none"
mkdir "$tmp/nowhere"
# The search for a store goes up to the root, so a stray store above $TMPDIR would be found.
above=$tmp
while [ ! -d "$above/.baml" ] && [ "$above" != / ]; do above=$(dirname "$above"); done
if [ ! -d "$above/.baml" ]; then
    fails 5 "no store at" "no store anywhere" sh -c 'cd "$1" && "$2" dump' - "$tmp/nowhere" "$varve"
else
    count=$((count + 1))
    echo "ok $count - no store anywhere # SKIP there is one in $above"
fi
echo text >"$tmp/file"
fails 5 "neither a directory nor an archive" "a store that is a file" "$varve" dump "$tmp/file"
: >"$tmp/nothing"
fails 5 "neither a directory nor an archive" "an empty file" "$varve" dump "$tmp/nothing"
tar -cf "$tmp/other.tar" -C "$tmp" file
fails 5 "holds no store" "an archive without a store" "$varve" dump "$tmp/other.tar"
head -c 100000 "$tmp/s.tar.gz" | head -c 20000 >"$tmp/cut.tar.gz"
fails 5 "is damaged" "an archive cut short" "$varve" dump "$tmp/cut.tar.gz"
mkfifo "$tmp/fifo"
fails 5 "neither a directory nor an archive" "a FIFO" "$varve" dump "$tmp/fifo"
mkdir -p "$tmp/odd/profiles-v1" && : >"$tmp/odd/profiles-v1/streams"
fails 5 "not a directory" "streams is a file" "$varve" dump "$tmp/odd/profiles-v1"
fails 2 "see .varve dump --help" "two stores" "$varve" dump "$tmp/d" "$tmp/d"
fails 2 "twice" "the store twice" "$varve" dump --store "$tmp/d" "$tmp/d"
fails 2 "did you mean --store" "a mistyped option" "$varve" dump --stroe "$tmp/d"
fails 2 "did you mean .varve dump" "a mistyped verb" "$varve" dmup
fails 2 "lists them" "an unknown verb" "$varve" xyzzy
fails 2 "lists them" "no verb" "$varve"

# A tar that stops at any block before its end is none, also where a member has just ended.
end=$(python3 -c 'import sys; print(len(sys.stdin.buffer.read().rstrip(b"\0")) // 512 + 1)' <"$fixtures/demo-store.tar")
taken= refused=0
for blocks in $(seq $((end + 1))); do
    head -c $((blocks * 512)) "$fixtures/demo-store.tar" >"$tmp/cut.tar"
    "$varve" dump "$tmp/cut.tar" >/dev/null 2>"$tmp/err"
    status=$?
    if [ $status = 0 ]; then
        taken="$taken $blocks"
    elif [ $status = 5 ] && grep -q "^varve: the archive .*cut.tar" "$tmp/err"; then
        refused=$((refused + 1))
    fi
done
[ "$taken $refused" = " $((end + 1)) $end" ]
ok $? "a tar that is cut short"
gzip -c "$tmp/cut.tar" >"$tmp/whole.tar.gz" && head -c $((end * 512)) "$tmp/cut.tar" | gzip >"$tmp/cut.tar.gz"
"$varve" dump "$tmp/whole.tar.gz" >/dev/null 2>&1
whole=$?
"$varve" dump "$tmp/cut.tar.gz" >/dev/null 2>"$tmp/err"
[ "$whole $?" = "0 5" ] && grep -q "cut short" "$tmp/err"
ok $? "one in a whole gzip file too"

"$varve" dump "$fixtures/damaged-5.tar" >/dev/full 2>"$tmp/err"
[ $? = 5 ] && [ "$(wc -l <"$tmp/err")" = 1 ] && grep -q "No space left" "$tmp/err"
ok $? "a full disk behind standard output"
(ulimit -f 1; exec "$varve" dump "$fixtures/damaged-5.tar" >"$tmp/cut" 2>"$tmp/err")
[ $? = 5 ] && [ "$(wc -l <"$tmp/err")" = 1 ] && grep -q "File too large" "$tmp/err"
ok $? "a file behind it that may not grow"
{ "$varve" dump "$fixtures/damaged-5.tar" 2>"$tmp/err"; echo $? >"$tmp/status"; } | true
[ "$(cat "$tmp/status")" = 5 ] && [ "$(wc -l <"$tmp/err")" = 1 ]
ok $? "a reader that hangs up"

"$varve" --help >"$tmp/out" && grep -q "^  dump " "$tmp/out"
ok $? "varve --help"
"$varve" dump --help >"$tmp/out" && grep -q "usage: varve dump .*\[STORE\]" "$tmp/out" && grep -q "^examples:" "$tmp/out"
ok $? "varve dump --help"
"$varve" --version >"$tmp/out" && grep -q "^varve [0-9]" "$tmp/out"
ok $? "varve --version"
"$varve" --version >/dev/full 2>"$tmp/err"
[ $? = 5 ]
ok $? "varve --version to a full disk"
echo "1..$count"
