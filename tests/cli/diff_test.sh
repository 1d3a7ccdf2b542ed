#!/bin/bash
# `varve diff` on two builds of a program, whose calls moved to other lines, changed in number, and changed names.
# Speaks TAP.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
varve=$top_builddir/varve
dir=$(mktemp -d)
trap 'stop_all; rm -rf "$dir"' EXIT
unset BAML_PROFILE_DIR BAML_PROFILE NO_COLOR
export TZ=UTC
. "$top_srcdir/tests/tools/serving.sh"

# The program: main calls load twice, parse directly $1 times, and the function $3; $2 comment lines move all of it.
program()
{
    yes '# moved' | head -n "$2"
    cat <<EOF
fn tokens 1
    load 0
    int 1
    add
    return

fn parse 1
    load 0
    call tokens 1
    return

fn load 1
    load 0
    call parse 1
    return

fn $3 1
    load 0
    return

fn main 0
EOF
    for callee in load load $(yes parse | head -n "$1") "$3"; do
        printf '    int 1\n    call %s 1\n' "$callee"
        [ "$callee" = "$3" ] || echo '    pop'
    done
    echo '    return'
}

record() { BAML_PROFILE_DIR=$dir/$1/.baml/profiles-v1 "$top_builddir/examples/vm" "$dir/$1.vm" >/dev/null; }

cd "$dir" || exit 1
program 1 0 render >before.vm
program 12 3 show >after.vm
record before && record after && record before || exit 99

is "what changed, the largest first" "+11 +366.7% 3 14 +11 0 parse;+11 +366.7% 3 14 +11 0 tokens;-1 -100.0% 1 0 -1 0 gone render;+1 - 0 1 +1 0 new show;" \
    "$("$varve" diff before after --sort calls | awk 'NR > 1 && NR < 6 {$1 = $1; printf "%s;", $0}')"
is "the sides" "base: 10 calls, evidence complete head: 32 calls, evidence complete" \
    "$("$varve" diff before after | grep -E '^(base|head)' | sed 's/self.*;//' | xargs)"
is "the cause" "cause: main > parse: called 12 times, was 1; +22 calls there and below, 92% of all that changed" \
    "$("$varve" diff before after | tail -1)"
is "the other way round" "cause: main > parse: called 1 times, was 12; -22 calls there and below, 92% of all that changed" \
    "$("$varve" diff after before | tail -1)"
is "two runs of one build" "cause: no number of calls changed" "$("$varve" diff latest~1 latest --store before | tail -1)"
is "a row limit" "4 of 6 functions changed, the first ones are shown" \
    "$("$varve" diff before after --sort calls -n 1 | grep -o '4 of.*')"

# What was recorded one by one: asking with 1 fails, with 0 it does not
asking()
{
    cat <<'EOF'
llm ask 1
    load 0
    positive bad
    load 0
    return
bad:
    text no
    throw

fn asks 1
    try failed
    load 0
    call ask 1
    caught
failed:
    return

fn main 0
EOF
    for with in "$@"; do printf '    int %s\n    call asks 1\n    pop\n' "$with"; done
    printf '    int 0\n    return\n'
}
asking 0 0 >calm.vm
asking 0 1 1 0 1 >stormy.vm
record calm && record stormy || exit 99
paths() { awk '/ask/ && !/asks *main$/ {$1 = $1; print}'; }
is "spans by calling path" "+3 +3 ask main > asks" \
    "$("$varve" diff calm stormy --of spans | paths | grep -o '[^ ]* [^ ]* ask .*')"
is "how many there are" "base: 3 calls kept one by one, 5 counted; evidence complete head: 6 calls kept one by one, 11 counted; evidence complete" \
    "$("$varve" diff calm stormy --of spans | grep -E '^(base|head)' | xargs)"
is "spans of one function" 1 "$("$varve" diff calm stormy --of spans --function ask | grep -c ' ask ')"
is "fewer than there are" "more follow; --limit shows up to 1000" "$("$varve" diff calm stormy --of spans -n 1 | tail -1)"
is "errors by what was thrown where" "+3 - 0 3 +3 +3 new fresh ask main > asks" \
    "$("$varve" diff calm stormy --of errors | paths)"
is "how many of them" "base: 0 errors recorded, 0 calls ended by an error; evidence complete head: 3 errors recorded, 3 calls ended by an error; evidence complete" \
    "$("$varve" diff calm stormy --of errors | grep -E '^(base|head)' | xargs)"
is "the other way round, they are gone" "-3 -100.0% 3 0 -3 -3 gone fresh ask main > asks" \
    "$("$varve" diff stormy calm --of errors | paths)"
asking 0 1 >middle.vm
mv middle.vm stormy.vm
record stormy || exit 99
for verb in spans errors; do
    is "$verb of one store" "$("$varve" diff stormy#latest~1 stormy --of $verb)" \
        "$("$varve" $verb --store stormy --base latest~1)"
done
is "which has pages" 2 "$({ "$varve" spans --store stormy --base latest~1 -n 1; "$varve" spans --store stormy \
    --base latest~1 --cursor "$("$varve" spans --store stormy --base latest~1 -n 1 | sed -n 's/^--cursor //p')"; } | grep -c ' main')"

# The answer as JSON
tar -C before -cf before.tar .baml
"$varve" diff before.tar after --json >two.json
"$varve" diff before#latest~1 before#latest --json >one.json
field() { python3 -c "import json, sys; d = json.load(open(sys.argv[1])); print($2)" "$1"; }
is "calls of the cause" "12 1 11" "$(field two.json '" ".join(str(d["cause"]["calls"][k]) for k in ("head", "base", "delta"))')"
is "its path" "main parse" "$(field two.json '" ".join(d["cause"]["stack"])')"
is "two stores have two snapshots" True "$(field two.json '"base_snapshot" in d')"
is "lines moved, paths did not" "2 both" \
    "$(field two.json '[str(r[5][0]) + " " + r[4] for r in d["nodes"] if d["functions"][r[1]]["name"] == "load"][0]')"
is "a line that is not the same in both" None \
    "$(field two.json '[r[3] for r in d["nodes"] if d["functions"][r[1]]["name"] == "load"][0]')"
is "one store has one" False "$(field one.json '"base_snapshot" in d')"
is "other views" "render new gone" "$("$varve" diff before after --json --of functions --sort calls | python3 -c '
import json, sys
found = {item["name"]: item["state"] for item in json.load(sys.stdin)["items"]}
print("render", found["show"], found["render"])')"
is "spans" retained_spans "$("$varve" diff before after --json --of spans | python3 -c 'import json, sys; print(json.load(sys.stdin)["of"])')"
is "errors" "[]" "$("$varve" diff before after --json --of errors | python3 -c 'import json, sys; print(json.load(sys.stdin)["items"])')"

# The same bytes as HTTP
if command -v curl >/dev/null; then
    start before
    curl -s "$url/api/v1/flame?execution=latest&base=latest~1" >http.json
    "$varve" diff latest~1 latest --store before --json >command.json
    is "the bytes that HTTP sends" "$(sha256sum <http.json)" "$(sha256sum <command.json)"
    stop
fi

# fails NAME STATUS TEXT COMMAND...: the status, and a message with the text.
fails()
{
    local name=$1 status=$2 text=$3
    shift 3
    "$varve" "$@" >"$dir/out" 2>"$dir/err"
    is "$name" "$status yes" "$? $(grep -q -- "$text" "$dir/err" && echo yes || cat "$dir/err")"
}
fails "one side" 2 "needs BASE HEAD" diff before
fails "no such store" 5 "nowhere" diff nowhere after
fails "no such execution" 5 "varve ls" diff before#latest~7 after
fails "no id" 2 '"what" is not' diff before#what after
fails "no such view" 2 "one of flame" diff before after --json --of moon
fails "a view without --json" 2 "goes with --json; .varve flame. with --base shows it" diff before after --of flame
fails "a column of functions" 2 "does not go with --of spans" diff before after --of spans --sort calls
is "complete evidence" 0 "$("$varve" diff before after --strict >/dev/null; echo $?)"
tar -xf "$top_srcdir/tests/fixtures/demo-store.tar" -C "$dir"
fails "evidence that is not" 3 "evidence is partial" diff before "$dir" --strict
is "what is not known" "?" "$("$varve" diff before "$dir" | awk 'NR == 2 {print $1}')"
echo "1..$n"
exit $failed
