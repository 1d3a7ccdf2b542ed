#!/bin/bash
# The verbs ls, show and top in a terminal's terms: tables, messages, exit statuses. Speaks TAP.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
varve=$top_builddir/varve
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset BAML_PROFILE_DIR NO_COLOR
export TZ=UTC
. "$top_srcdir/tests/tools/tap.sh"

tar -xf "$top_srcdir/tests/fixtures/demo-store.tar" -C "$dir"
cd "$dir" || exit 1

is "ls: ids, newest first" "0c0d0e0f.1.9 0c0d0e0f.1.5 0c0d0e0f.1.1 eeeeeeee.1.1" "$("$varve" ls | awk 'NR > 1 {print $1}' | xargs)"
is "ls: a row" "0c0d0e0f.1.5 failed complete 2023-11-14 22:13:20 2.000 µs 1 1 app.Main" "$("$varve" ls | grep 1.5 | xargs)"
is "ls: unknown is not zero" "eeeeeeee.1.1 cancelled partial ? - 0 0 ?" "$("$varve" ls | grep ^eeee | xargs)"
next=$("$varve" ls -n 2 | sed -n 's/^--cursor //p')
is "ls: the next page" "0c0d0e0f.1.1 eeeeeeee.1.1" "$("$varve" ls --cursor "$next" | awk 'NR > 1 {print $1}' | xargs)"
is "ls: chosen by status" 0c0d0e0f.1.5 "$("$varve" ls --status failed | awk 'NR > 1 {print $1}' | xargs)"
is "ls: chosen by text, process and time" "0c0d0e0f.1.9 0c0d0e0f.1.5 0c0d0e0f.1.1" \
    "$("$varve" ls --q app.main --stream 000102030405060708090a0b0c0d0e0f --since 2023-11-14T22:13:20Z | awk 'NR > 1 {print $1}' | xargs)"
is "ls: none that is chosen" "no such executions" "$("$varve" ls --status panicked)"
is "search: nothing" "nothing that holds this text evidence partial" "$("$varve" search zzz | xargs)"
fails "help: one word too many" 2 'unexpected argument "x"' help ls x
next=$("$varve" search app -n 1 | sed -n 's/^--cursor //p')
is "search: the next page" "app.Helper app.Main" \
    "$({ "$varve" search app -n 1; "$varve" search app -n 1 --cursor "$next"; } | awk '$1 == "function" {print $4}' | xargs)"
is "ls of an archive" 5 "$("$varve" ls "$top_srcdir/tests/fixtures/demo-store.tar" | wc -l)"
is "no colour in a pipe" "" "$("$varve" ls | grep "$(printf '\033')")"
# A container may be without pseudo-terminals, or without script.
if script -qec true /dev/null >/dev/null 2>&1; then
    is "colour on a terminal" yes "$(script -qec "'$varve' ls" /dev/null | grep -q "$(printf '\033')\[3" && echo yes)"
    is "but not with NO_COLOR" "" "$(NO_COLOR=1 script -qec "'$varve' ls" /dev/null | grep "$(printf '\033')")"
fi

# Of streams whose index can't be read a few are named, the rest is counted.
mkdir -p "$dir/odd/streams"
for i in 1 2 3 4 5; do mkdir -p "$dir/odd/streams/$(printf "$i%.0s" $(seq 32))" && touch "$_/meta"; done
is "ls: unreadable streams" "4 11111111111111111111111111111111 2 more" \
    "$("$varve" ls "$dir/odd" 2>&1 >/dev/null | tee "$dir/err" | wc -l) $(awk 'NR == 1 {print $6}' "$dir/err") $(grep -o '[0-9]* more' "$dir/err")"

is "top: the default is the latest" "1 of 1 functions; all together 1 calls, self 0 ns; evidence partial" "$("$varve" top | tail -1)"
is "top: by self time" "app.Helper app.Main baml.sys.print" "$("$varve" top 0c0d0e0f.1.1 | awk '/app|baml/ {print $(NF - ($NF == "a.baml"))}' | xargs)"
is "top: sorted by name" "app.Helper" "$("$varve" top 0c0d0e0f.1.1 --sort name -n 1 | awk 'NR == 2 {print $(NF - 1)}')"
is "top: chosen by text" "app.Helper 1 of 1 functions that match; all together" \
    "$("$varve" top 0c0d0e0f.1.1 --q HELP | awk 'NR == 2 {print $(NF - 1)} NR == 3 {print $1, $2, $3, $4, $5, $6, $7, $8}' | xargs)"
next=$("$varve" top 0c0d0e0f.1.1 --sort name -n 1 | sed -n 's/^--cursor //p')
is "top: the next page" "app.Main" "$("$varve" top 0c0d0e0f.1.1 --sort name -n 1 --cursor "$next" | awk 'NR == 2 {print $(NF - 1)}')"
is "top: against a base" "$("$varve" diff 0c0d0e0f.1.1 0c0d0e0f.1.5 | sed '$d')" "$("$varve" top 0c0d0e0f.1.5 --base 0c0d0e0f.1.1)"
is "top: incomplete times give no share" "-" "$("$varve" top 0c0d0e0f.1.1 -n 1 | awk 'NR == 2 {print $3}')"
is "show: the verdict" partial "$("$varve" show 0c0d0e0f.1.1 | awk '/^evidence/ {print $2}')"
is "top: calls that are in no row" "3 of the calls found no memory" "$("$varve" top 0c0d0e0f.1.1 | tail -1 | cut -c1-30)"
is "show: calls without a context are an issue" "issues 3 calls" "$("$varve" show 0c0d0e0f.1.1 | sed -n '/^issues/,/overflow/p' | sed '$!{1!d}' | xargs | cut -c1-14)"
is "show: an equation" "error_links 1 = 1 holds" "$("$varve" show 0c0d0e0f.1.5 | grep '  error_links ' | xargs)"
is "show: an equation that is not checked" "" "$(for id in $("$varve" ls | awk 'NR > 1 {print $1}'); do "$varve" show $id; done | grep '=.*not checked')"
is "show: states in words" "the record of the end is missing" "$("$varve" show 0c0d0e0f.1.9 | sed -n 's/^index *//p')"
is "show: issues in words" "1 0" "$("$varve" show 0c0d0e0f.1.9 | grep -c '^  the record of the end is missing$') $("$varve" show 0c0d0e0f.1.9 | grep -c no_root_ended)"
is "show: numbers of one" "1 call, 1 error, 0 cancelled; 1 context, 1 thread" "$("$varve" show 0c0d0e0f.1.5 | grep cancelled | cut -d, -f1-4)"

is "flame: a tree, the largest first" "8.000 µs 5.495 µs 1 0 100.0% ############ app.Main|5.000 µs 4.900 µs 1 0 62.5% ######## spawn app.Helper" \
    "$("$varve" flame 0c0d0e0f.1.1 | sed -n '2p;3p' | sed 's/  */ /g; s/^ //' | paste -sd'|')"
is "flame: what is below stands to the right" "|  spawn app.Helper|    baml.sys.print" \
    "$("$varve" flame 0c0d0e0f.1.1 | sed "s/µ/u/g" | awk 'NR == 2 {at = index($0, "app.Main")} NR == 3 || NR == 4 {printf "|%s", substr($0, at)}')"
is "flame: bottom up, folded" "app.Helper (2 more)" \
    "$("$varve" flame 0c0d0e0f.1.1 --order bottom_up --metric calls --max-nodes 1 | awk 'NR > 1 && NR < 4 {print $NF == "more)" ? "(" substr($(NF - 1), 2) " more)" : $NF}' | xargs)"
is "flame: what transforms leave out is told" "filtered: 4 contexts, 5 calls" \
    "$("$varve" flame 0c0d0e0f.1.1 --transform only_user --transform hide:app | tail -1 | grep -o 'filtered:[^;]*')"
is "callers: of one function" "app.Helper app.Main" "$("$varve" callers app.Helper 0c0d0e0f.1.1 --depth 2 | awk 'NR > 1 && NF > 6 {print $NF}' | sort -u | xargs)"
is "callees: of one function" "app.Main" "$("$varve" callees app.Main 0c0d0e0f.1.1 | awk 'NR == 2 {print $NF}')"
is "flame: against a base" "8.000 µs 2.000 µs -6.000 µs" \
    "$("$varve" flame 0c0d0e0f.1.5 --base 0c0d0e0f.1.1 | awk 'NR == 2 {print $1, $2, $3, $4, $5, $6}')"
is "flame: no colour but on a terminal" 0 "$("$varve" flame 0c0d0e0f.1.1 | grep -c "$(printf '\033')")"

is "spans: a row" "1.1 +100 ns 8.000 µs ok yes yes app.Main" "$("$varve" spans 0c0d0e0f.1.1 | sed -n 2p | xargs)"
is "spans: what was only counted" "1 of 1 calls that match, of 1 kept one by one; 8 calls were counted, 1 of them selected; evidence partial" \
    "$("$varve" spans 0c0d0e0f.1.1 | tail -1)"
is "spans: one call" "available, 60 bytes, bamlv_1_" "$("$varve" spans 0c0d0e0f.1.1 --call 1.1 | sed -n 's/^args *\(.*bamlv_1_\).*/\1/p')"
is "spans: an end that is not recorded is none" "? - unfinished" "$("$varve" spans latest | awk 'NR == 2 {print "?", $4, $5}')"

is "errors: a row" "5~0 fresh bytecode available 1 1 of 1 app.Main a.baml:7" "$("$varve" errors 0c0d0e0f.1.5 | sed -n 2p | xargs)"
is "errors: one error, and the calls it ended" "5.1 app.Main" "$("$varve" errors 0c0d0e0f.1.5 --error 5~0 | tail -1 | xargs)"
is "errors: none is told with what there was" "0 of 0 errors recorded (0 fresh, 0 rethrown); 0 calls ended by an error; evidence partial" \
    "$("$varve" errors latest | tail -1)"
is "logs: none is told with what there was" "0 of 0 log events that match, of 0 recorded; evidence complete" \
    "$("$varve" logs 0c0d0e0f.1.5 | head -1)"
is "show: a checkpoint of an ended one" "state ended nothing is on its way" \
    "$("$varve" show 0c0d0e0f.1.5 --checkpoint | grep -E '^state|way' | xargs)"
is "show: a checkpoint of one that died" "in flight 1 calls, 1 spans, 1 threads" \
    "$("$varve" show latest --checkpoint | grep '^in flight' | xargs)"
is "streams: two processes" "0c0d0e0f ended eeeeeeee ended" \
    "$("$varve" streams | awk 'NR > 1 {print substr($1, 25), $2}' | xargs)"
next=$("$varve" streams -n 1 | sed -n 's/^--cursor //p')
is "streams: the next page" eeeeeeee "$("$varve" streams -n 1 --cursor "$next" | awk 'NR > 1 {print substr($1, 25)}')"
is "streams: one" "meta whole up to 3, highest 3" \
    "$("$varve" streams 000102030405060708090a0b0c0d0e0f | grep ^meta | xargs)"
is "streams: a plane" "2 good 479 1" \
    "$("$varve" streams 000102030405060708090a0b0c0d0e0f data --after 1 -n 1 | awk 'NR == 2 {print $1, $2, $3, $4}')"
is "threads: a row" "5 errored 1 1 second" "$("$varve" threads 0c0d0e0f.1.5 | awk 'NR == 2 {print $1, $(NF - 3), $(NF - 2), $(NF - 1), $NF}')"

# A server whose address nobody can read does not stay.
timeout 20 "$varve" serve --listen 127.0.0.1:0 >/dev/full 2>"$dir/err"
is "serve: no room for its address" "5 1" "$? $(wc -l <"$dir/err")"

# Standard descriptors that are closed stay unused.
"$varve" ls --json >&- 2>"$dir/err"
is "closed output" "5 1" "$? $(wc -l <"$dir/err")"

# fails NAME STATUS TEXT COMMAND...: the status, and one line on standard error that holds the text.
fails()
{
    local name=$1 status=$2 text=$3
    shift 3
    "$varve" "$@" >"$dir/out" 2>"$dir/err"
    is "$name" "$status 1 yes" "$? $(wc -l <"$dir/err") $(grep -q -- "$text" "$dir/err" && echo yes || cat "$dir/err")"
}
fails "an unknown execution" 5 "varve ls" show 0c0d0e0f.9.9
fails "no id" 2 "latest" top nonsense
fails "a column that is none" 2 "self_ns" top --sort best
fails "spans: no function of that name" 5 "--function: that execution has no such function" spans --function nobody
fails "spans: a duration that is none" 2 "--min-duration must be nanoseconds" spans --min-duration soon
fails "spans: a call that is none" 2 "--call is not a call's id" spans --call x
fails "spans: a call that was not kept" 5 "only counted" spans --call 1.77
fails "spans: a call without a name" 2 "--call needs a value; the one given is empty" spans --call ""
fails "callers: a function that was not called" 5 '^varve: "nobody": no call of such a function was recorded; ' callers nobody
fails "callees: no name of a function" 2 '^varve: "" must be a definition key' callees ''
fails "search: no text" 2 '^varve: "" must be a text' search ''
fails "an argument that is no id, behind others" 2 '^varve: "nonsense" is not an execution.s id' callers nobody nonsense
fails "one of several IDs" 2 '^varve: "nonsense" is not an execution.s id' top latest nonsense
fails "an execution that is not there" 5 '^varve: "latest~99": no execution' top latest latest~99
fails "a number with zeros before it" 2 '"latest~01" is not an execution.s id' show latest~01
fails "diff: an option of another view" 2 '^varve: --metric does not go with --of spans; ' diff latest latest --json --of spans --metric calls
fails "diff: and of none that is named" 2 '^varve: --sort does not go with --of flame, the default; ' diff latest latest --json --sort calls
fails "diff: callers of what" 2 '^varve: --of callers needs --function NAME; ' diff latest latest --json --of callers
fails "diff: an id of another store" 2 '^varve: "nope" is not an execution.s id' diff '.#nope' latest
fails "a base that is none" 2 '^varve: "nope" is not an execution.s id' flame --base nope
fails "a base that is not there" 5 '^varve: "latest~99": no execution' flame --base latest~99
fails "context: in several executions" 2 'several executions; use --execution with a full id, such as baml_thread_' context 44f8da8464cab7a5d5b7c86fa15b51116d3ad39a930c6350754c091aed4b4cc7
fails "flame: no such root" 5 '^varve: --root: .*; .varve flame --json --ids 1. names' flame --root "$(printf %064d 0)"
fails "no verb that is near" 2 '^varve: no verb "foo"; .varve --help. lists' foo
fails "a verb that is" 2 'did you mean .varve ls' sl
fails "diff: neither an id nor a store" 5 '^varve: "nobody" is neither' diff latest nobody
fails "flame: no transform" 2 "--transform must be focus:TEXT, hide:TEXT, collapse:TEXT or only_user; see .varve flame --help." flame --transform drop:x
fails "flame: no order" 2 "--order" flame --order sideways
fails "spans: a number that no function has" 5 "--function: that execution has no such function" spans --function "#99999"
fails "value: pages of no uses" 2 "--limit and --cursor go with --uses" value "$(printf %064d 1)" --cursor AAAA
fails "value: another list's cursor" 2 "--cursor is not a cursor of this list" value "$(printf %064d 1)" --uses --cursor AAAA
fails "streams: no stream of that id" 5 '"0*1": no stream of that id in this store; .varve streams. lists' streams "$(printf %032d 1)"
fails "streams: no plane of that name" 5 '^varve: "cas": a stream has the planes' streams 000102030405060708090a0b0c0d0e0f cas
fails "context: no context of that key" 5 '^varve: "0*1": no execution holds that context; .varve flame --json --ids 1' context "$(printf %064d 1)"
fails "value: no object of that name" 5 '^varve: "0*1": ' value "$(printf %064d 1)"
fails "streams: one that is none, and a plane" 2 "is no stream.s id" streams 00 data
fails "streams: a page of one stream" 2 "goes with a list" streams 000102030405060708090a0b0c0d0e0f -n 1
fails "streams: a scan alone" 2 "goes with --use" streams --scan
fails "logs: a level and no time" 2 "--since must be nanoseconds" logs --level info --since yesterday
fails "spans: one call and a filter" 2 "goes with no other option" spans --call 1.1 --status ok
fails "errors: an error that is none" 2 "--error is not an error's id" errors --error x
fails "errors: an error without a name" 2 "--error needs a value; the one given is empty" errors --error ""
fails "errors: an error that is not there" 5 "no error of that id" errors --error 1~9
fails "errors: one error and a page" 2 "goes with no other option" errors --error 1~1 -n 3
fails "threads: too many rows" 2 "limit" threads -n 1001
fails "a number that is none" 2 "limit" ls -n 0
fails "too many arguments" 2 "unexpected" show latest latest
fails "no terminal is driven by a name" 2 'xyz??31m' "$(printf 'xyz\302\23331m')"
fails "an execution where a store is meant" 5 'no store at latest; .varve show ID. shows an execution' ls latest
fails "no store" 5 "record a program first" ls "$dir/nowhere"
fails "no store in a directory" 5 "record a program first" ls /
if [ "$(id -u)" != 0 ]; then
    mkdir -m 000 "$dir/closed"
    fails "a directory that may not be entered" 5 "Permission denied" ls "$dir/closed"
fi
fails "a file" 5 "." ls "$dir/err"
mkdir "$dir/files"
echo >"$dir/files/.baml"
echo >"$dir/files/fib.lua"
fails "a file in the store's way" 5 "profiles-v1: $dir/files/.baml is not a directory\$" ls "$dir/files/.baml"
fails "and no store is waited for there" 5 "$dir/files/.baml is not a directory\$" serve "$dir/files/.baml" --listen 127.0.0.1:0
fails "no id: which" 2 '"latestt" is not an execution.s id: .*latest~N; see' show latestt
fails "no id but a file" 2 '"files/fib.lua" is not an execution.s id: .*; name a store with --store; see' top files/fib.lua
fails "no id but a directory" 2 '"files" is not .*; name a store with --store; see' show --json files
fails "an option before the verb" 2 "^varve: --json: options come after the verb" --json ls
fails "a short one" 2 "^varve: -n: options come after the verb" -n 2 top
fails "help of no verb" 2 "did you mean .varve top" help tpo
"$varve" ls --index "$dir/none/x" >/dev/null 2>"$dir/err"
is "an index that can't be used: why" "0 varve: index: $dir/none/x can't be used (No such file or directory); going on without one" "$? $(cat "$dir/err")"
is "help of a verb" "$("$varve" top --help)" "$("$varve" help top)"
fails "a web directory that is none" 2 "web-dir $dir/none is not a directory" serve --web-dir "$dir/none"
for verb in attach detach; do
    is "$verb --help offers no store" "print what was ${verb}ed as JSON" "$("$varve" $verb --help | sed -n 's/^  --\(json\|store [^ ]*\)  *//p')"
done
is "serve --help tells its JSON" "print the address as JSON" "$("$varve" serve --help | sed -n 's/^  --json  *//p')"
mkdir -p "$dir/empty/.baml/profiles-v1"
is "an empty store" "no executions yet; record one with \`varve-lua SCRIPT\`, or any program that uses libvarve" "$("$varve" ls "$dir/empty")"
fails "an empty store has no latest" 5 "varve ls" top --store "$dir/empty"
"$varve" ls --json >/dev/full 2>"$dir/err"
is "a full disk" 5 $?

echo "1..$n"
exit $failed
