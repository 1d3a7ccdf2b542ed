#!/bin/bash
# Plug-ins from outside: loaded at the start, attached to and detached from a running process. Speaks TAP.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
varve=$top_builddir/varve program=$top_builddir/tests/control/vm_program
count=$top_builddir/examples/.libs/count.so probe=$top_builddir/tests/control/.libs/plugin_probe.so
dir=$(mktemp -d)
export BAML_PROFILE_DIR=$dir/.baml/profiles-v1
host=
trap '[ -z "$host" ] || kill -9 "$host" 2>/dev/null; rm -rf "$dir"' EXIT
. "$top_srcdir/tests/tools/tap.sh"

# fails NAME STATUS TEXT COMMAND...: the status, and one line on standard error that holds the text.
fails()
{
    local name=$1 status=$2 text=$3
    shift 3
    "$varve" "$@" >"$dir/out" 2>"$dir/err"
    is "$name" "$status 1" "$? $(wc -l <"$dir/err")"
    has "$name: says why" "$text" "$(cat "$dir/err")"
}
# await N WORD: until the program has said it N times.
await()
{
    until [ "$(grep -c "$2" "$dir/program.out")" -ge "$1" ]; do
        kill -0 "$host" || { echo "Bail out! the program has ended"; exit 1; }
        read -r -t 0.02 _ <> <(:)
    done
    true
}
# begin ARGUMENT...: a program that runs until `end`; $host is its process.
begin()
{
    runs=0
    mkfifo "$dir/in" 2>/dev/null
    : >"$dir/program.out" # what the one before has said is not this one's word
    "$program" "$@" <"$dir/in" >"$dir/program.out" 2>"$dir/program.err" &
    host=$!
    exec 9>"$dir/in"
    await 1 ready
}
# run: the app once.
run()
{
    printf . >&9
    runs=$((runs + 1))
    await $runs ran
}
end()
{
    exec 9>&-
    wait "$host"
    status=$?
    host=
}
# What the app does in one run: its main, fib(8) and fib(6), 63 frames, and 6 that wait.
app_calls=$((1 + 67 + 25 + 63 + 6)) app_bytes=$((63 * 16 + 32))
# counted N FILE: the file is a line of the sample that counted N runs, and is gone.
counted()
{
    line="count: $(($1 * app_calls)) calls, $1 exceptions, $(($1 * 64)) objects, $(($1 * app_bytes)) bytes"
    is "what the plug-in counted: $1 runs" "$line" "$(cat "$2")"
    rm -f "$2"
}

begin
run
is "attach says what it did" "attached $count to process $host" "$("$varve" attach "$host" "$count=$dir/counts" 2>&1)"
fails "twice" 5 "a plug-in named count is attached already" attach "$host" "$count"
run
run
is "detach says what it did" "detached count from process $host" "$("$varve" detach "$host" count 2>&1)"
run
counted 2 "$dir/counts"
for typed in count.so "$count"; do
    "$varve" attach "$host" "$count=$dir/counts" >/dev/null
    fails "a name that is not attached" 5 "no plug-in named cuont is attached; attached: count" detach "$host" cuont
    is "detach by the file: ${typed##*/.*/}" "detached count from process $host" "$("$varve" detach "$host" "$typed" 2>&1)"
    rm -f "$dir/counts"
done
for _ in {1..20}; do
    "$varve" attach "$host" "$count=$dir/counts" >/dev/null && run && "$varve" detach "$host" >/dev/null || break
done
is "twenty times in a row" "20 20" "$(wc -l <"$dir/counts") $(grep -c "^count: $app_calls calls" "$dir/counts")"
"$varve" attach "$host" "$count=$dir/counts" >/dev/null
"$varve" attach "$host" "$probe" >/dev/null
fails "two: which" 5 "several plug-ins are attached" detach "$host"
is "two: the one" "detached plugin_probe from process $host" "$("$varve" detach "$host" plugin_probe)"
is "two: and the other, whose name it says" "detached count from process $host" "$("$varve" detach "$host")"
is "attach as JSON" "attached $count $host" \
    "$("$varve" attach --json "$host" "$count=$dir/counts" | jq -r '"\(.action) \(.plugin) \(.process)"')"
is "detach as JSON" "detached count $host" \
    "$("$varve" detach --json "$host" | jq -r '"\(.action) \(.plugin) \(.process)"')"
fails "JSON of what is refused" 5 "no plug-in is attached" detach --json "$host"
is "is none" "" "$(cat "$dir/out")"
fails "a store" 2 "reads no store" attach --store . "$host" "$count"
fails "none left" 5 "no plug-in is attached" detach "$host"
cp "$count" "$dir/a name=x.so"
(cd "$dir" && ln -s "$count" linked.so)
is "a relative path" "attached $(realpath "$count") to process $host" "$(cd "$dir" && "$varve" attach "$host" linked.so)"
"$varve" detach "$host" count >/dev/null
fails "no such file" 5 "nowhere.so: No such file or directory" attach "$host" "$dir/nowhere.so"
fails "no shared object" 5 "attach_test.sh: not a shared object: " attach "$host" "$top_srcdir/tests/cli/attach_test.sh"
fails "no plug-in" 5 "no varve_plugin_open" attach "$host" "$top_builddir/tests/runtime/.libs/fault_shim.so"
fails "refused" 5 "it refused to start" attach "$host" "$probe=refuse-start"
fails "another version" 5 "made for version 2000" attach "$host" "$probe=version"
fails "the main place is the recorder's" 5 "the main profiler's place is taken" attach "$host" "$probe=main"
"$varve" attach "$host" "$probe=no-detach" >/dev/null
fails "can't be detached" 5 "can't be detached (VARVE_E_NOT_DETACHABLE)" detach "$host"
kill -STOP "$host"
fails "a process that stands still" 4 "did not answer within 1000 ms" attach "$host" "$count" --timeout 1
kill -CONT "$host"
"$varve" attach "$host" "$count=$dir/counts2" >/dev/null
run
end
is "the program ended well" 0 "$status"
counted 1 "$dir/counts2"
is "what it ran was recorded" "$runs" "$("$varve" ls -n 100 | grep -c succeeded)"
is "with all its calls" "complete" "$("$varve" show latest | awk '/^evidence/ {print $2}')"

fails "no number" 2 "not a process's number" attach x "$count"
fails "zero" 2 "not a process's number" detach 0
fails "no file given" 2 "varve attach --help" attach 1
fails "a timeout that is none" 2 "timeout" detach 1 --timeout 0
sleep 600 &
host=$!
fails "no host" 5 "is no host that listens" attach "$host" "$count"
kill "$host"
wait "$host" 2>/dev/null
fails "no process" 5 "there is no process $host" attach "$host" "$count"

begin
"$varve" attach "$host" "$probe=hang" >/dev/null 2>"$dir/err" &
client=$!
until "$varve" detach "$host" nobody --timeout 1 2>&1 | grep -q "did not answer"; do :; done
kill -9 "$host"
wait "$host" 2>/dev/null
wait "$client"
is "the host is killed while it is asked" 5 $?
has "and the client says so" "went away before it answered" "$(cat "$dir/err")"
exec 9>&-

# At the start: by options and by the environment. What fails is told, and the program goes on.
VARVE_PROFILER="$count=$dir/env:nowhere/none.so" begin --profiler "$probe" --profiler "$probe=refuse-open"
run
end
is "at the start" 0 "$status"
counted 1 "$dir/env"
is "failures are told in a line each" 2 "$(grep -c '^vm: ' "$dir/program.err")"
has "one by one" "none.so: No such file" "$(cat "$dir/program.err")"
BAML_PROFILE=0 begin --profiler "$count=$dir/off"
run
end
is "plug-ins need no recorder" 0 "$status"
counted 1 "$dir/off"

# The build line of docs/plugins.md.
(cd "$dir" && ${CC:-cc} -shared -fPIC -O2 -o mine.so "$top_srcdir/examples/count.c" -I"$top_srcdir/control") 2>"$dir/err"
is "the sample builds by the line of the handbook" "0 " "$? $(cat "$dir/err")"
begin
"$varve" attach "$host" "$dir/mine.so=$dir/mine" >/dev/null && run && "$varve" detach "$host" mine >/dev/null
counted 1 "$dir/mine"
end

echo "1..$n"
exit $failed
