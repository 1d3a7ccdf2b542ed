#!/bin/bash
# `varve serve` end to end, with curl. Speaks TAP.
set -u
for tool in curl python3 flock zstd; do
    command -v $tool >/dev/null || { echo "1..0 # SKIP no $tool"; exit 0; }
done
varve=$top_builddir/varve
dir=$(mktemp -d)
keeper=
finish()
{
    [ -n "$keeper" ] && kill "$keeper" 2>/dev/null
    stop_all
    rm -rf "$dir"
}
trap finish EXIT
unset NO_COLOR BAML_PROFILE_DIR
. "$top_srcdir/tests/tools/serving.sh"

get() { curl -s -m 60 "$@"; }
code() { curl -s -m 60 -o /dev/null -w '%{http_code}' "$@"; }
headers() { curl -s -m 60 -D - -o /dev/null "$@" | tr -d '\r'; }
header() { local name=$1; shift; headers "$@" | sed -n "s/^$name: //Ip"; }
json() { python3 -c "import json, sys; d = json.load(sys.stdin); print($1)"; }
# Sends raw bytes; prints the status of each answer.
raw()
{
    python3 -c '
import socket, sys
host, port = sys.argv[1].split("//")[1].split(":")
s = socket.create_connection((host, int(port)), 60)
data = b""
try:
    s.sendall(sys.argv[2].replace("HUGE", "x" * 600000).encode("latin-1").decode("unicode_escape").encode("latin-1"))
    s.shutdown(socket.SHUT_WR)
except OSError:
    pass # hung up on; an answer may be there all the same
try:
    while part := s.recv(65536):
        data += part
except OSError:
    pass
print(data.split(b"\r\n")[0].decode().split(" ")[1] if data.startswith(b"HTTP/") else "closed")
' "$url" "$1"
}

tar -xf "$top_srcdir/tests/fixtures/demo-store.tar" -C "$dir"
start "$dir"
api=$url/api/v1
port=${url##*:}
# Every answer goes through a proxy that holds it against the API's own description.
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
proxy=
if python3 -c 'import jsonschema' 2>/dev/null; then
    get "$api/openapi.json" >"$dir/openapi.json"
    mkfifo "$dir/proxy"
    python3 "$top_srcdir/tests/server/answers.py" "$dir/openapi.json" "$dir/report" >"$dir/proxy" &
    proxy=$!
    servers[$proxy]=
    read -r http_proxy <"$dir/proxy"
    export http_proxy=127.0.0.1:$http_proxy
fi

# Pages
has "/ is plain text for curl" "curl -s '$url/api/v1/executions'" "$(get "$url/")"
works=0
for line in $(get "$url/" | sed -n "s/.*curl -s '\(.*\)'/\1/p"); do
    [ "$(code "$line")" = 200 ] && works=$((works + 1))
done
is "six working curl lines" 6 $works
has "/ is the dashboard for a browser" "<!doctype html>" "$(get -H 'Accept: text/html,*/*' "$url/")"
has "with a strict policy" "default-src 'none'; script-src 'self'" "$(header Content-Security-Policy -H 'Accept: text/html' "$url/")"
is "a module's type" "text/javascript; charset=utf-8" "$(header Content-Type "$url/main.js")"
is "an asset's tag" 304 "$(code -H "If-None-Match: $(header ETag "$url/main.js")" "$url/main.js")"
has "the index lists resources" "/api/v1/flame" "$(get "$api")"
is "meta" "v1 True" "$(get "$api/meta" | json 'd["api"], d["store"]["present"]' | tr -d "(',)")"
for h in 'X-Content-Type-Options: nosniff' 'Referrer-Policy: no-referrer' 'Cross-Origin-Resource-Policy: same-origin'; do
    has "$h" "$h" "$(headers "$api/meta")"
done
is "no CORS header" "" "$(headers -H "Origin: $url" "$api/meta" | grep -i access-control)"

# Host and Origin
is "own Host" 200 "$(code -H "Host: localhost:$port" "$api")"
is "Host without port" 200 "$(code -H 'Host: 127.0.0.1' "$api")"
is "another Host" 421 "$(code -H 'Host: evil.example' "$api")"
is "another port" 421 "$(code -H 'Host: localhost:1' "$api")"
is "no Host" 421 "$(raw 'GET /api/v1 HTTP/1.0\r\n\r\n')"
is "two Hosts" 421 "$(raw "GET /api/v1 HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n")"
is "own Origin" 200 "$(code -H "Origin: $url" "$api")"
is "another Origin" 403 "$(code -H 'Origin: http://evil.example' "$api")"
is "Origin null" 403 "$(code -H 'Origin: null' "$api")"
is "a Host with a slash" 421 "$(code -H "Host: localhost:$port/x" "$api")"

# Raw targets
for target in /api%2fv1 /api%2Fv1 /api%5cv1 '/api/v1%00' /%2e%2e/etc /api/../v1 '/..%2f' '/a%zz'; do
    is "GET $target" 400 "$(code --path-as-is "$url$target")"
done
is "bytes outside ASCII" 400 "$(raw 'GET /\xc3\xa9 HTTP/1.1\r\nHost: localhost\r\n\r\n')"
is "absolute form" 400 "$(raw 'GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n')"
long=$(printf 'x%.0s' $(seq 9000))
is "a huge address is refused" 414 "$(raw "GET /HUGE HTTP/1.1\r\nHost: localhost\r\n\r\n")"
short=$(get "$api/executions" | json 'd["items"][0]["short_id"]')
many=$(printf "execution=$short&base=$short&%.0s" $(seq 1000))
is "a thousand executions on each side" 200 "$(code "$api/functions?${many}limit=1")"
is "one more" 400 "$(code "$api/functions?${many}base=latest")"
is "a long parameter" 200 "$(code "$api/executions?q=$long")"

# Methods
is "HEAD" 200 "$(code -I "$api/executions")"
is "HEAD has no body but its length" "$(get "$api/executions" | wc -c)" "$(headers -I "$api/executions" | sed -n 's/^Content-Length: //p')"
for method in POST PUT DELETE OPTIONS PATCH TRACE; do
    is "$method" "405 GET, HEAD" "$(code -X $method "$api/executions") $(header Allow -X $method "$api/executions")"
done
is "POST with a body" 405 "$(code -d 'a=b' "$api/executions")"
is "POST to nowhere" 404 "$(code -d 'a=b' "$api/nowhere")"
is "an unknown path" 404 "$(code "$api/nowhere")"
is "a path below one" 404 "$(code "$api/meta/x")"
is "a trailing slash" 404 "$(code "$api/")"

# Parameters
while read -r status target; do
    is "$target" "$status" "$(code "$api$target")"
done <<'TARGETS'
400 /executions?bogus=1
400 /executions?limit=0
400 /executions?limit=1001
400 /executions?limit=-1
400 /executions?limit=1e2
400 /executions?limit=99999999999999999999999
400 /executions?limit=
400 /executions?limit=1&limit=1
400 /executions?status=green
400 /executions?since=yesterday
400 /executions?since=9&until=1
400 /executions?stream=12
400 /executions?cursor=AAAA
400 /executions?q=%ff
400 /executions?q=%00
200 /executions?status=failed&since=2020-01-01T00:00:00Z&until=2030-01-01T00:00:00.5Z
200 /executions?since=0
400 /meta?x=1
400 /functions
400 /functions?execution=latest&sort=best
200 /functions?execution=latest&sort=name
400 /functions?execution=nonsense
404 /functions?execution=latest~99
404 /functions?execution=00000000.1.1
400 /flame?execution=latest&metric=cpu
400 /flame?execution=latest&order=sideways
400 /flame?execution=latest&function=app.Main
400 /flame?execution=latest&transform=hide:
400 /flame?execution=latest&transform=focus:x&transform=drop:x
400 /flame?execution=latest&transform=
400 /flame?execution=latest&transform=only_user:x
200 /flame?execution=latest&order=bottom_up&transform=hide:x&transform=only_user&transform=focus:%23&transform=hide:x
404 /flame?execution=latest&transform=focus:nobody&root=0000000000000000000000000000000000000000000000000000000000000000
400 /callers?execution=latest
400 /callees?execution=latest&function=app.Main&order=bottom_up
400 /callees?execution=latest&function=app.Main&root=00000000000000000000000000000000
400 /callers?function=app.Main
400 /callers?execution=latest&function=app.Main&function=app.Main
404 /callers?execution=latest&function=nobody
404 /callers?execution=latest&function=%2399999
404 /callers?execution=latest&function=%23
404 /callers?execution=latest&function=%231/zz
404 /callees?execution=latest&function=%2399999999999
200 /callers?execution=latest&function=app.Main&metric=calls&max_nodes=1&depth=1&width=3
200 /callees?execution=latest&function=app.Main&edges=call&transform=only_user
400 /flame?execution=latest&width=0
400 /flame?execution=latest&max_nodes=1000001
400 /flame?execution=latest&edges=call,jump
400 /flame?execution=latest&ids=2
400 /flame?execution=latest&root=12
404 /flame?execution=latest&root=0000000000000000000000000000000000000000000000000000000000000000
200 /flame?execution=0c0d0e0f.1.1&ids=1&edges=call,spawn&depth=3&width=1200
404 /executions/latest~7
400 /executions/latest~01
400 /callers?execution=latest&function=
400 /executions/latest/spans?function=
400 /executions/nonsense
200 /executions/latest
200 /executions/0c0d0e0f.1.1/spans?status=ok&reason=root&order=-duration&from=0&to=18446744073709551615&min_duration=1us
200 /executions/0c0d0e0f.1.1/spans?context=overflow:invalid_parent_context:call
400 /executions/latest/spans?status=green
400 /executions/latest/spans?reason=luck
400 /executions/latest/spans?order=duration
400 /executions/latest/spans?from=yesterday
400 /executions/latest/spans?from=2&to=1
400 /executions/latest/spans?min_duration=ms
400 /executions/latest/spans?min_duration=1.5ms
400 /executions/latest/spans?min_duration=18446744073709551615s
400 /executions/latest/spans?thread=main
400 /executions/latest/spans?context=12
400 /executions/latest/spans?limit=1001
400 /executions/latest/spans?offset=1
400 /executions/latest/spans?cursor=AAAA
400 /executions/latest/spans?execution=latest
404 /executions/latest/spans?thread=77
400 /executions/latest/spans?thread=99999999999999999999
404 /executions/latest/spans?function=nobody
404 /executions/latest/spans?function=%2399999
404 /executions/latest/spans?function=%2399999999999
400 /executions/latest~7/spans?functoin=nobody
400 /executions/latest~7/errors?limit=0
400 /executions/latest~7/threads?cursor=AAAA
404 /executions/latest/spans?context=0000000000000000000000000000000000000000000000000000000000000000
404 /executions/latest/spans?context=overflow:none:call
400 /executions/latest/spans/1
400 /executions/latest/spans/1.x
400 /executions/latest/spans/baml_call_1_AAAA
404 /executions/latest/spans/1.77
400 /executions/0c0d0e0f.1.1/spans/1.1?x=1
200 /executions/0c0d0e0f.1.1/spans/1.1
404 /executions/latest~7/spans
200 /executions/0c0d0e0f.1.1/errors?limit=1
200 /executions/0c0d0e0f.1.1/threads?limit=1
400 /executions/latest/errors?limit=0
400 /executions/latest/errors?kind=fresh
400 /executions/latest/errors?cursor=AAAA
400 /executions/latest/errors/1
400 /executions/latest/errors/1.1
400 /executions/latest/errors/x~1
400 /executions/latest/errors/1~
404 /executions/latest/errors/1~77
200 /executions/0c0d0e0f.1.5/errors/5~0
400 /executions/0c0d0e0f.1.5/errors/5~0?limit=1
400 /executions/latest/threads?name=main
400 /executions/latest/threads?cursor=AAAA
404 /executions/latest/threads/1
404 /executions/nobody.1.1/threads/1
404 /executions/latest~7/errors
404 /executions/latest~7/threads
404 /executions/latest/spans/
404 /executions//spans
404 /executions/latest/spans/1.1/x
404 /executions/latest/nothing
404 /streams/ffffffffffffffffffffffffffffffff
400 /streams/xyz
200 /streams/000102030405060708090a0b0c0d0e0f
400 /executions?as_of=now
410 /executions?as_of=0000000000000000000000000000000000000000000000000000000000000000
TARGETS

# Problems
problem=$(get "$api/executions?limit=0")
is "a problem's shape" "urn:varve:problem:bad-parameter 400 limit True True True" \
    "$(json 'd["type"], d["status"], d["parameter"], bool(d["title"]), bool(d["detail"]), bool(d["remedy"])' <<<"$problem" | tr -d "(',)")"
is "a problem's type" "application/problem+json" "$(header Content-Type "$api/nowhere")"
is "a problem names no path" "" "$(get "$api/executions?as_of=now" | grep "$dir")"
while read -r path remedy; do
    has "what was not found is looked for elsewhere: $path" "$remedy" "$(get "$api$path" | json 'd["remedy"]')"
done <<'REMEDIES'
/executions/latest~7 /api/v1/executions lists
/flame?execution=latest&base=latest~7 /api/v1/executions lists
/executions/latest/spans?function=nobody /api/v1/functions lists
/executions/latest/spans?thread=99 /threads lists
/executions/latest/spans/1.99 /spans lists
/executions/latest/errors/1~9 /errors lists
/flame?execution=latest&root=0000000000000000000000000000000000000000000000000000000000000000 ids=1
/values/0000000000000000000000000000000000000000000000000000000000000000 /uses tells
/streams/00000000000000000000000000000000 /api/v1/streams lists
/streams/000102030405060708090a0b0c0d0e0f/data/99 {plane} lists
REMEDIES
is "unknown parameters are named" bogus "$(get "$api/executions?bogus=1" | json 'd["parameter"]')"
is "gone tells the present token" "$(get "$api/executions" | json 'd["snapshot"]["as_of"]')" \
    "$(get "$api/executions?as_of=$(printf '0%.0s' $(seq 64))" | json 'd["as_of"]')"

# Lists and pages
is "the generation" ac925e413439f12afaaf5408fb0be263c6c1af99f6747940da1140c246282ea5 \
    "$(get "$api/executions" | json 'd["snapshot"]["generation"]')"
is "newest first" "0c0d0e0f.1.9 0c0d0e0f.1.5 0c0d0e0f.1.1 eeeeeeee.1.1" \
    "$(get "$api/executions" | json '" ".join(i["short_id"] for i in d["items"])')"
first=$(get "$api/executions?limit=3")
cursor=$(json 'd["next"]' <<<"$first")
is "the second page" "eeeeeeee.1.1 None" "$(get "$api/executions?limit=3&cursor=$cursor" | json 'd["items"][0]["short_id"] + " " + str(d["next"])')"
is "another query's cursor" 400 "$(code "$api/executions?status=failed&cursor=$cursor")"
is "another list's cursor" 400 "$(code "$api/functions?execution=latest&cursor=$cursor")"
is "found by name" "3" "$(get "$api/executions?q=APP.main" | json 'len(d["items"])')"
is "filtered by status" "0c0d0e0f.1.5" "$(get "$api/executions?status=failed" | json 'd["items"][0]["short_id"]')"
is "latest~1" "0c0d0e0f.1.5" "$(get "$api/executions/latest~1" | json 'd["execution"]["short_id"]')"
is "unknown starts are not latest" 404 "$(code "$api/executions/latest~3")"
is "exact numbers above 2^53 are strings" str "$(get "$api/executions" | json 'type(d["items"][0]["started_unix_ns"]).__name__')"
is "two streams" 2 "$(get "$api/streams" | json 'len(d["items"])')"

# Single calls
spans=$api/executions/0c0d0e0f.1.1/spans
is "a call by both of its names" "$(get "$spans/1.1" | md5sum)" \
    "$(get "$spans/$(get "$spans" | json 'd["items"][0]["call_id"]')" | md5sum)"
is "calls that were only counted stand beside those that were kept" "8 1 1" \
    "$(get "$spans" | json '"%d %d %d" % tuple(d["population"][k] for k in ("calls", "retained", "matched"))')"
is "no match is not nothing: what there is is told" "[] 1 0 None" \
    "$(get "$spans?status=errored" | json '"%s %d %d %s" % (d["items"], d["population"]["retained"], d["population"]["matched"], d["next"])')"
is "a call that was not selected" "call no call of that id was recorded on its own; one that was not selected is only counted" \
    "$(get "$spans/1.77" | json 'd["parameter"] + " " + d["detail"]')"


# Errors and threads
errors=$api/executions/0c0d0e0f.1.5/errors
is "an error, and what it ended" "5~0 fresh ['app.Main'] True 5.1" \
    "$(get "$errors/5~0" | json '"%s %s %s %s %s" % (d["error"]["short_id"], d["error"]["kind"], [f["fqn"] for f in d["stack"]], d["error"]["stack_complete"], d["terminal_calls"][0]["short_id"])')"
is "its context fails always" "1 1 1" "$(get "$errors" | json '"%d %d %d" % tuple(d["items"][0][k] for k in ("context_calls", "context_errors", "failure_rate"))')"
is "an error is one row, and as many failed calls as it ended" "1 1" "$(get "$errors" | json '"%d %d" % (d["population"]["captures"], d["population"]["errored_calls"])')"
is "a cursor of another list" 400 "$(code "$api/executions/0c0d0e0f.1.1/threads?cursor=$(get "$spans?limit=1" | json 'd["next"] or "AAAA"')")"
is "a lane" "5 root None errored [] 1" \
    "$(get "$api/executions/0c0d0e0f.1.5/threads" | json '"%s %s %s %s %s %d" % tuple(d["items"][0][k] for k in ("short_id", "kind", "parent_thread_id", "end_status", "issues", "calls_retained"))')"

# Tags and codings
etag=$(header ETag "$api/flame?execution=latest")
followers=$(get "$api/meta" | json 'd["limits"]["followers"]')
is "only what has a tag is ever unchanged" "False False True True" "$(get "$api/openapi.json" | json '" ".join(
    str("304" in d["paths"]["/api/v1/" + p]["get"]["responses"]) for p in ("follow", "store", "meta", "flame"))')"
is "unchanged: 304" 304 "$(code -H "If-None-Match: $etag" "$api/flame?execution=latest")"
is "304 has no body" "" "$(get -H "If-None-Match: $etag" "$api/flame?execution=latest")"
is "304 folds nothing" "fold;dur=0.000" "$(header Server-Timing -H "If-None-Match: $etag" "$api/flame?execution=latest~1" | grep -o 'fold;dur=0.000')"
is "weak comparison, several tags" 304 "$(code -H "If-None-Match: \"x\", W/$etag" "$api/flame?execution=latest")"
is "another query's tag" 200 "$(code -H "If-None-Match: $etag" "$api/flame?execution=latest&ids=1")"
flame="$api/flame?execution=0c0d0e0f.1.1&ids=1"
get "$flame" >"$dir/plain"
for coding in gzip zstd; do
    get -H "Accept-Encoding: $coding" "$flame" >"$dir/packed"
    is "$coding is named" $coding "$(header Content-Encoding -H "Accept-Encoding: $coding" "$flame")"
    $coding -dc <"$dir/packed" | cmp - "$dir/plain"
    ok "$coding of a stream"
    get -H "Accept-Encoding: $coding" "$api/executions" | $coding -dc | cmp - <(get "$api/executions")
    ok "$coding of a whole answer"
    is "$coding: its tag is known in any coding" 304 \
        "$(code -H "If-None-Match: $(header ETag -H "Accept-Encoding: $coding" "$flame")" "$flame")"
    tag=$(header ETag -H "Accept-Encoding: $coding" "$flame")
    is "$coding: unchanged keeps the coding's tag" "$tag" \
        "$(header ETag -H "Accept-Encoding: $coding" -H "If-None-Match: $tag" "$flame")"
done
is "small answers stay plain" "" "$(header Content-Encoding -H 'Accept-Encoding: gzip' "$api/meta")"
is "Vary" "Accept-Encoding" "$(header Vary "$api/executions")"

# The same bytes from the command
for view in "ls|executions" "show 0c0d0e0f.1.1|executions/0c0d0e0f.1.1" \
    "top 0c0d0e0f.1.1 --sort calls|functions?execution=0c0d0e0f.1.1&sort=calls"; do
    # shellcheck disable=SC2086
    "$varve" ${view%%|*} --json --store "$dir" | cmp - <(get "$api/${view##*|}")
    ok "varve ${view%%|*} --json"
done

# A store that changes
before=$(get "$api/executions" | json 'd["snapshot"]["as_of"]')
get "$api/executions?as_of=$before" >"$dir/then"
etag=$(header ETag "$api/executions")
flock -x "$dir/.baml/profiles-v1/streams/000102030405060708090a0b0c0d0e0f/stream.lock" sleep 600 &
keeper=$!
changed()
{
    for _ in $(seq 400); do
        [ "$(code -H "If-None-Match: $1" "$api/executions")" = 200 ] && return 0
        sleep 0.05
    done
    return 1
}
changed "$etag"
ok "a writer that lives changes the generation"
is "and its execution runs" "running running running" "$(get "$api/executions/0c0d0e0f.1.9" | json 'd["execution"]["status"] + " " + d["evidence"]["verdict"] + " " + d["execution"]["verdict"]')"
is "a former state is at hand" "$(cat "$dir/then")" "$(get "$api/executions?as_of=$before")"
etag=$(header ETag "$api/executions")
pkill -P $keeper sleep 2>/dev/null
kill $keeper 2>/dev/null
wait $keeper 2>/dev/null
keeper=
changed "$etag"
ok "so does its death"
etag=$(header ETag "$api/executions")
mkdir "$dir/other"
tar -xf "$top_srcdir/tests/fixtures/damaged-3.tar" -C "$dir/other"
cp -r "$dir"/other/.baml/profiles-v1/streams/* "$dir/.baml/profiles-v1/streams/"
changed "$etag"
ok "a commit changes the tag"
is "and is listed" 3 "$(get "$api/streams" | json 'len(d["items"])')"

# Clients that are slow, many or broken
python3 - "$url" <<'PYTHON' &
import socket, sys, time
host, port = sys.argv[1].split("//")[1].split(":")
held = [socket.create_connection((host, int(port))) for _ in range(50)]
for s in held:
    s.sendall(b"GET /api/v1/executions HTTP/1.1\r\nHo")
time.sleep(600)
PYTHON
keeper=$!
for _ in $(seq 200); do
    [ "$(ls -l /proc/$server/fd 2>/dev/null | grep -c socket)" -gt 50 ] && break
    sleep 0.05
done
is "half a request holds up nobody" 200 "$(code -m 10 "$api/executions")"
for i in $(seq 200); do
    code "$api/flame?execution=latest&depth=$i" >"$dir/many.$i" &
    many+=($!)
done
wait "${many[@]}"
is "200 clients at once" "$(printf '200%.0s' $(seq 200))" "$(cat "$dir"/many.*)"
case $(raw 'NOISE\r\n\r\n') in 400 | closed) true ;; *) false ;; esac
ok "noise is no request"
is "the server still answers" 200 "$(code "$api/executions")"

# The end: idle and half-open connections do not hold it up
from=$(date +%s)
stop
is "SIGTERM ends well" 0 $?
[ $(($(date +%s) - from)) -le 20 ]
ok "and soon"
kill $keeper
wait $keeper 2>/dev/null
keeper=
is "nothing was written to standard error" "" "$(cat "$dir/err")"

# A port that is taken, and addresses that are refused
start "$dir"
"$varve" serve "$dir" --listen "${url#http://}" >"$dir/out2" 2>"$dir/err2"
is "an occupied port: status" 5 $?
is "one line" 1 "$(wc -l <"$dir/err2")"
has "that says so" "in use" "$(cat "$dir/err2")"
stop INT
is "SIGINT ends well" 0 $?
"$varve" serve "$dir" --listen 0.0.0.0:0 >"$dir/out2" 2>"$dir/err2"
is "an open address needs a token" "2 1" "$? $(wc -l <"$dir/err2")"
"$varve" serve "$dir" --listen nowhere >"$dir/out2" 2>"$dir/err2"
is "no address" "2 1" "$? $(wc -l <"$dir/err2")"

echo 'no store' >"$dir/file"
"$varve" serve "$dir/file" --listen 127.0.0.1:0 >"$dir/out2" 2>"$dir/err2"
is "a file that is no store" "5 1" "$? $(wc -l <"$dir/err2")"

# A token
echo 0123456789abcdefgh >"$dir/token"
start "$dir" --token-file "$dir/token" --allow-host varve.test
is "no token" 401 "$(code "$url/api/v1")"
is "which asks for one" Bearer "$(header WWW-Authenticate "$url/api/v1")"
is "a wrong token" 401 "$(code -H 'Authorization: Bearer 0123456789abcdefgi' "$url/api/v1")"
is "the token" 200 "$(code -H 'Authorization: Bearer 0123456789abcdefgh' "$url/api/v1")"
is "once as a parameter" "303 /api/v1" "$(code "$url/api/v1?token=0123456789abcdefgh") $(header Location "$url/api/v1?token=0123456789abcdefgh")"
has "for a cookie" "HttpOnly; SameSite=Strict" "$(header Set-Cookie "$url/api/v1?token=0123456789abcdefgh")"
get -c "$dir/jar" -o /dev/null "$url/?token=0123456789abcdefgh"
is "the cookie" 200 "$(code -b "$dir/jar" "$url/api/v1")"
is "an allowed host" 200 "$(code -b "$dir/jar" -H "Host: varve.test" -H 'Authorization: Bearer 0123456789abcdefgh' "$url/api/v1")"
stop
ok "and it ends well"
echo short >"$dir/token"
"$varve" serve "$dir" --token-file "$dir/token" >/dev/null 2>"$dir/err2"
is "a short token is refused" 2 $?
printf '0123456789abcdefgh\n0123456789abcdefgi\n' >"$dir/token"
"$varve" serve "$dir" --token-file "$dir/token" >/dev/null 2>"$dir/err2"
is "so is one of two lines" 2 $?
has "which names the file" "$dir/token" "$(cat "$dir/err2")"
for host in a/b a:80 'a b' '[::1' ::1; do
    "$varve" serve "$dir" --listen 127.0.0.1:0 --allow-host "$host" >/dev/null 2>"$dir/err2"
    is "no host: $host" "2 1" "$? $(grep -c -- ' is no host to allow' "$dir/err2")"
done
(ulimit -n 20; exec "$varve" serve "$dir" --listen 127.0.0.1:0 >/dev/null 2>"$dir/err2")
is "too few descriptors to answer anybody" "4 1" "$? $(grep -c 'allows 20 open files' "$dir/err2")"

# A store that is not there yet, and one that goes
mkdir "$dir/later"
start "$dir/later"
is "who says for what it waits" "varve: no store at $dir/later yet; waiting for it" "$(cat "$dir/err")"
is "the remedy names no directory of its own" 0 "$(get "$url/api/v1/executions" | grep -c 'this directory')"
is "no store yet" 404 "$(code "$url/api/v1/executions")"
is "the problem says so" "urn:varve:problem:no-store" "$(get "$url/api/v1/executions" | json 'd["type"]')"
has "and where" "/later; it is served once" "$(get "$url/api/v1/executions" | json 'd["detail"]')"
has "and how to record" "varve-lua" "$(get "$url/")"
mkdir "$dir/later/.baml"
cp -r "$dir/other/.baml/profiles-v1" "$dir/later/.baml/"
api=$url/api/v1
for _ in $(seq 400); do
    [ "$(code "$api/executions")" = 200 ] && break
    sleep 0.05
done
is "then it is there" 200 "$(code "$api/executions")"
rm -rf "$dir/later/.baml/profiles-v1"
for _ in $(seq 400); do
    [ "$(code "$api/executions")" = 404 ] && break
    sleep 0.05
done
is "and then it is gone" 404 "$(code "$api/executions")"
stop
ok "it ends well all the same"

# More half requests than there are descriptors for: those that wait longest are hung up, and all others answered.
printf '#!/bin/sh\nulimit -n 64\nexec "%s" "$@"\n' "$varve" >"$dir/few"
chmod +x "$dir/few"
is "so many may follow" 64 "$followers"
varve=$dir/few start "$dir"
is "and fewer where descriptors are few" True "$(get "$url/api/v1/meta" | json '0 < d["limits"]["followers"] < 64')"
python3 - "$url" "$dir/crowded" <<'PYTHON' &
import socket, sys, time
host, port = sys.argv[1].split("//")[1].split(":")
held = [socket.create_connection((host, int(port))) for _ in range(100)]
for s in held[::-1]:
    try:
        s.sendall(b"GET /api/v1/executions HTTP/1.1\r\nHo")
    except OSError:
        pass
open(sys.argv[2], "w").close()
time.sleep(600)
PYTHON
keeper=$!
for _ in $(seq 1200); do
    [ -e "$dir/crowded" ] && break
    sleep 0.05
done
answered=0
for _ in 1 2 3 4 5; do # for less than the library's own timeout of all of them would take
    [ "$(code -m 10 "$url/api/v1/meta")" = 200 ] && answered=$((answered + 1)) || answered=0
    [ $answered = 3 ] && break
done
is "a crowd keeps nobody out" 3 $answered
kill $keeper
wait $keeper 2>/dev/null
keeper=
stop

"$varve" serve "$dir" --json --listen 127.0.0.1:0 --idle-exit 1 >"$dir/out"
is "a script reads where it listens" 1 "$(jq -r .listening "$dir/out" | grep -c '^http://127\.0\.0\.1:[0-9]*/$')"

# A request that the HTTP library refuses itself leaves nothing behind: an idle server still ends.
start "$dir" --idle-exit 1
many=$(seq -f 'a%g=1' -s '&' 5000)
for _ in 1 2 3; do code "$url/?$many" >/dev/null; done
ended
is "requests too large for the library" 0 $?

# The development directory
mkdir "$dir/web"
echo '<!doctype html>mine' >"$dir/web/index.html"
start "$dir" --web-dir "$dir/web"
is "a page from a directory" '<!doctype html>mine' "$(get -H 'Accept: text/html' "$url/")"
is "nothing beside it" 404 "$(code "$url/token")"
is "no hidden files" 404 "$(code "$url/.hidden")"
stop
ok "end"

# The terms of the health plane: equations that hold, and null where a term is not stored
terms='"%s %s %s" % (d["evidence"]["verdict"], (d["health_terms"] or {}).get("invocations_attempted"), [q["holds"] for q in d["evidence"]["equations"] if q["name"] in ("invocations", "invocations_folded", "awaits", "awaits_folded", "spans_selected")])'
echo 'local function f(n) return n < 2 and n or f(n - 1) + f(n - 2) end; f(10); coroutine.wrap(function() f(5) end)()' >"$dir/health.lua"
env -u BAML_PROFILE BAML_PROFILE_DIR="$dir/health/profiles-v1" "$top_builddir/varve-lua" "$dir/health.lua"
ok "record a program"
start "$dir/health/profiles-v1"
whole=$(get "$url/api/v1/executions/latest")
is "equations of a recording" \
    "complete $(echo "$whole" | json 'd["totals"]["calls"]') [True, True, True, True, True]" "$(echo "$whole" | json "$terms")"
health=$(echo "$dir"/health/profiles-v1/streams/*/health)
files=$url/api/v1/streams/$(basename "$(dirname "$health")")
etag=$(header ETag "$files/health")
is "a tag of the health plane" 304 "$(code -H "If-None-Match: $etag" "$files/health")"
is "a tag of another plane" 304 "$(code -H "If-None-Match: $(header ETag "$files/data")" "$files/data")"
cp "$health/00000000000000000001.varvehealth" "$health/00000000000000000002.varvehealth"
is "a file more is listed" "['1', '2']" \
    "$(get -H "If-None-Match: $etag" "$files/health" | json '[str(i["sequence"]) for i in d["items"]]')"
rm "$health/00000000000000000002.varvehealth"
stop
ok "end"
file=$(ls "$dir"/health/profiles-v1/streams/*/health/00000000000000000001.varvehealth)
printf X | dd of="$file" bs=1 seek=70 conv=notrunc 2>/dev/null
start "$dir/health/profiles-v1"
is "a damaged file of terms" "complete None [None, None, None, None, None]" "$(get "$url/api/v1/executions/latest" | json "$terms")"
stop
ok "end"
rm -r "$(dirname "$file")"
start "$dir/health/profiles-v1"
is "a store without terms" "complete None [None, None, None, None, None]" "$(get "$url/api/v1/executions/latest" | json "$terms")"
stop
ok "end"

# Another build is another answer: the tag of one is none of the other's.
cp "$varve" "$dir/build"
echo >>"$dir/build"
start "$dir"
etag=$(header ETag "$url/api/v1/meta")
stop
varve=$dir/build start "$dir"
is "a tag of another build" 200 "$(code -H "If-None-Match: $etag" "$url/api/v1/meta")"
mkdir -p "$dir/namesake/profiles-v1"
cp -r "$dir/.baml/profiles-v1/." "$dir/namesake/profiles-v1"
etag=$(header ETag "$url/api/v1/meta")
stop
varve=$dir/build start "$dir/namesake/profiles-v1"
is "a tag of a store of another name" 200 "$(code -H "If-None-Match: $etag" "$url/api/v1/meta")"
stop
varve=$dir/build start "$dir"
is "a tag of this build" 304 "$(code -H "If-None-Match: $(header ETag "$url/api/v1/meta")" "$url/api/v1/meta")"

# Bodies that nobody asked for are read to an end, or not at all
is "a body" 405 "$(raw "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello")"
is "a body without end" closed "$(raw "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 600000\r\n\r\nHUGE" 2>/dev/null)"
stop

# Idle exit. The client runs before the server does, or that might be idle for too long at once.
coproc CLIENT { python3 -c '
import socket, sys, time
print("ready", flush=True)
host, port = sys.stdin.readline().strip().split("//")[1].split(":")
s = socket.create_connection((host, int(port)), 60)
s.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhe")
time.sleep(5)
s.sendall(b"llo")
print(s.recv(100).split()[1].decode(), flush=True)'; }
exec {from_client}<&"${CLIENT[0]}" # which is gone with the client
read -r said <&"$from_client"
start "$dir" --idle-exit 3
echo "$url" >&"${CLIENT[1]}"
read -r said <&"$from_client"
is "a request that takes longer than idleness is allowed" 405 "$said"
ended
is "an idle server ends" 0 $?

if [ -n "$proxy" ]; then
    kill $proxy
    wait $proxy 2>/dev/null
    unset "servers[$proxy]"
    is "every answer is as the API describes it" "" "$(sed '$d' "$dir/report" | sort -u | head -n 10)"
    [ "$(sed -n '$s/ answers$//p' "$dir/report")" -gt 300 ]
    ok "all were looked at"
fi

echo "1..$n"
exit $failed
