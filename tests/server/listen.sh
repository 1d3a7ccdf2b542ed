#!/bin/bash
# Where `varve serve` listens, what it logs, and how it ends. Speaks TAP.
set -u
for tool in curl python3; do
    command -v $tool >/dev/null || { echo "1..0 # SKIP no $tool"; exit 0; }
done
varve=$top_builddir/varve
dir=$(mktemp -d)
trap 'stop_all; rm -rf "$dir"' EXIT
unset NO_COLOR BAML_PROFILE_DIR LISTEN_FDS LISTEN_PID
. "$top_srcdir/tests/tools/serving.sh"
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE

code() { curl -s -m 60 -o /dev/null -w '%{http_code}' "$@"; }
# until COMMAND...: waits until it holds, for at most a minute
until_true()
{
    for _ in $(seq 1200); do
        "$@" && return 0
        sleep 0.05
    done
    return 1
}

# begin COMMAND...: a server that prints where it listens; sets server and name
begin()
{
    : >"$dir/out"
    "$@" >"$dir/out" 2>"$dir/err" &
    server=$!
    servers[$server]=
    until_true grep -q '^listening on ' "$dir/out" || { echo "Bail out! $(cat "$dir/err")"; exit 1; }
    name=$(sed -n 's/^listening on //p' "$dir/out")
    url=${name%/}
}
# refused NAME STATUS TEXT COMMAND...: it ends at once, with one line
refused()
{
    local what=$1 want=$2 text=$3 status
    shift 3
    "$@" >"$dir/out2" 2>"$dir/err2"
    status=$?
    is "$what" "$want 1" "$status $(grep -vc 'waiting for it' "$dir/err2")"
    has "$what: says so" "$text" "$(cat "$dir/err2")"
}
handed=(python3 "$top_srcdir/tests/server/hand_over.py")

tar -xf "$top_srcdir/tests/fixtures/demo-store.tar" -C "$dir"
store=$dir/.baml/profiles-v1

# A Unix socket
socket=$dir/s
through() { code --unix-socket "$socket" "$@"; }
begin "$varve" serve "$store" --listen "unix:$socket"
is "its name" "unix:$socket" "$name"
is "only its user's" "600 socket" "$(stat -c '%a %F' "$socket")"
is "it answers" 200 "$(through http://localhost/api/v1/meta)"
is "Host is as elsewhere" 421 "$(through http://evil.example/api/v1/meta)"
is "but has no port" 421 "$(through http://localhost:8278/api/v1/meta)"
is "and no origin is its own" 403 "$(through -H 'Origin: http://localhost' http://localhost/api/v1/meta)"
works=0
while read -r line; do
    eval "$line -o /dev/null -f" && works=$((works + 1))
done < <(curl -s --unix-socket "$socket" http://localhost/ | grep 'curl -s')
is "six lines that work" 6 $works
refused "a second server" 5 "in use" "$varve" serve "$store" --listen "unix:$socket"
is "which harms nothing" 200 "$(through http://localhost/api/v1/meta)"
stop
is "it ends well" 0 $?
[ ! -e "$socket" ]
ok "and leaves no file"

begin "$varve" serve "$store" --listen "unix:$socket"
stop KILL 2>/dev/null
[ -S "$socket" ]
ok "who is killed leaves its socket"
for i in 1 2 3 4 5; do
    "$varve" serve "$store" --listen "unix:$socket" >"$dir/race.$i" 2>"$dir/race.err.$i" &
    race[$i]=$!
    servers[$!]=
done
decided() { [ "$(cat "$dir"/race.[1-5] "$dir"/race.err.* | wc -l)" = 5 ]; }
until_true decided
is "of five that come then one takes it over" "1 4" \
    "$(cat "$dir"/race.[1-5] | grep -c listening) $(cat "$dir"/race.err.* | grep -c 'in use')"
is "and answers" 200 "$(through http://localhost/api/v1/meta)"
rm "$socket"
echo mine >"$socket"
for i in 1 2 3 4 5; do kill "${race[$i]}" 2>/dev/null; wait "${race[$i]}"; unset "servers[${race[$i]}]"; done
is "another file of that name stays" mine "$(cat "$socket")"
refused "a file that is no socket" 5 "no socket" "$varve" serve "$store" --listen "unix:$socket"
is "and stays too" mine "$(cat "$socket")"
rm "$socket"
long=$dir/$(printf 'x%.0s' $(seq 120))
refused "a path that is too long" 2 "at most 107 bytes" "$varve" serve "$store" --listen "unix:$long"
refused "no path" 2 "needs the path" "$varve" serve "$store" --listen unix:
refused "a directory that is not there" 5 "" "$varve" serve "$store" --listen "unix:$dir/no/s"
refused "--open has no use" 2 "browsers" "$varve" serve "$store" --listen "unix:$socket" --open
(cd "$dir" && exec "$varve" serve "$store" --json --idle-exit 1 --listen "unix:it's \"s\"" >"$dir/out" 2>"$dir/err")
is "a name in JSON" "unix:$dir/it's \"s\"" "$(python3 -c 'import json, sys; print(json.load(sys.stdin)["listening"])' <"$dir/out")"

# Other users: only root can try
if [ "$(id -u)" = 0 ] && setpriv --reuid=65533 --clear-groups test -x "$varve" 2>/dev/null; then
    mkdir -m 777 "$dir/open"
    chmod 711 "$dir"
    socket=$dir/open/s
    chmod -R a+rX "$dir/.baml"
    begin setpriv --reuid=65533 --clear-groups "$varve" serve "$store" --no-index --listen "unix:$socket"
    is "another user can't connect" 000 "$(setpriv --reuid=65532 --clear-groups curl -s -m 60 -o /dev/null -w '%{http_code}' \
        --unix-socket "$socket" http://localhost/api/v1/meta)"
    chmod 666 "$socket"
    is "nor ask where the mode lets him" 403 "$(setpriv --reuid=65532 --clear-groups curl -s -m 60 -o /dev/null -w '%{http_code}' \
        --unix-socket "$socket" http://localhost/api/v1/meta)"
    is "the user can" 200 "$(setpriv --reuid=65533 --clear-groups curl -s -m 60 -o /dev/null -w '%{http_code}' \
        --unix-socket "$socket" http://localhost/api/v1/meta)"
    is "root can" 200 "$(through http://localhost/api/v1/meta)"
    stop
    is "end" 0 $?
fi

# Sockets that are handed over
begin "${handed[@]}" tcp 1 -- "$varve" serve "$store"
is "a socket that was handed over" 200 "$(code "$url/api/v1/meta")"
is "has the rules of any" 421 "$(code -H 'Host: evil.example' "$url/api/v1/meta")"
stop
is "end" 0 $?
socket=$dir/handed
begin "${handed[@]}" "unix:$socket" 1 -- "$varve" serve "$store"
is "a Unix socket" "unix:$socket 200" "$name $(through http://localhost/api/v1/meta)"
stop
[ -S "$socket" ]
ok "whose file is not ours to remove"
begin "${handed[@]}" tcp - -- "$varve" serve "$store" --listen 127.0.0.1:0
is "variables for another process" 200 "$(code "$url/api/v1/meta")"
stop
is "end" 0 $?
refused "several" 2 "hands over 2 sockets" "${handed[@]}" tcp,tcp 2 -- "$varve" serve "$store"
refused "no number" 2 "not a number" "${handed[@]}" tcp x -- "$varve" serve "$store"
refused "none" 2 "not a number" "${handed[@]}" tcp 0 -- "$varve" serve "$store"
refused "a file" 2 "descriptor 3 is no socket" "${handed[@]}" file 1 -- "$varve" serve "$store"
refused "a socket for datagrams" 2 "no stream socket" "${handed[@]}" udp 1 -- "$varve" serve "$store"
refused "one that does not listen" 2 "no stream socket that listens" "${handed[@]}" deaf 1 -- "$varve" serve "$store"
refused "one that others reach" 2 "--token-file" "${handed[@]}" tcp-open 1 -- "$varve" serve "$store"
refused "and --listen" 2 "exclude" "${handed[@]}" tcp 1 -- "$varve" serve "$store" --listen 127.0.0.1:0

# The log
echo 0123456789abcdefgh >"$dir/token"
log=$dir/requests.log
begin "$varve" serve "$store" --listen 127.0.0.1:0 --token-file "$dir/token" --log="$log"
auth=(-H 'Authorization: Bearer 0123456789abcdefgh')
lines=0
logged() { [ "$(wc -l <"$log")" -ge "$1" ]; }
# asks COMMAND...: a request whose line is there before the next one's, as the log may lag behind the answers
asks()
{
    "$@"
    lines=$((lines + 1))
    until_true logged $lines
}
asks curl -s "${auth[@]}" -o "$dir/answer" "$url/api/v1/executions"
n_bytes=$(wc -c <"$dir/answer")
for target in '/?token=0123456789abcdefgh' '/api/v1/meta?a=1&%74oken=0123456789abcdefgh&b=2' '/api/v1?token=0123456789abcdefg'; do
    asks code "$url$target" >/dev/null
done
asks code "${auth[@]}" -I "$url/api/v1/executions" >/dev/null
asks code "${auth[@]}" "$url/x\"y" >/dev/null
asks code "${auth[@]}" "$url/$(printf 'x%.0s' $(seq 3000))" >/dev/null
is "a line each" 7 "$(wc -l <"$log")"
is "its file is nobody else's" 600 "$(stat -c %a "$log")"
is "no token" 0 "$(grep -c 0123456789abcdef "$log")"
is "what it tells" 7 "$(grep -Ec '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z (GET|HEAD) [!-~]+ [0-9]{3} [0-9]+ [0-9]+\.[0-9]{3}ms$' "$log")"
is "status and bytes" "GET /api/v1/executions 200 $n_bytes" "$(sed -n 1p "$log" | cut -d' ' -f2-5)"
is "without the token" "GET /api/v1/meta?a=1&b=2 303" "$(sed -n 3p "$log" | cut -d' ' -f2-4)"
is "HEAD has no body" "HEAD /api/v1/executions 200 0" "$(sed -n 5p "$log" | cut -d' ' -f2-5)"
[ "$(sed -n 7p "$log" | wc -c)" -lt 1024 ]
ok "a long target is cut"
# What a token opens, and what it does not
bearer() { code -H "Authorization: $1" "$url/api/v1"; }
is "the scheme's case does not matter" 200 "$(bearer 'bearer 0123456789abcdefgh')"
for wrong in 'Basic 0123456789abcdefgh' 'Bearer 0123456789abcdefg' 'Bearer 0123456789abcdefghi' 'Bearer ' 'Bearer' '0123456789abcdefgh'; do
    is "Authorization: $wrong" 401 "$(bearer "$wrong")"
done
for target in / /main.js /api/v1 /api/v1/openapi.json /api/v1/executions /api/v1/follow /nothing; do
    is "$target without it" 401 "$(code "$url$target")"
done
is "which tells nothing" 0 "$(curl -s "$url/" | grep -c 0123456789abcdef)"
trade() { curl -s -m 60 -o /dev/null -D - "$@" | tr -d '\r'; }
trade "$url/api/v1/executions?limit=1&%74oken=0123456789abcdefgh&q=a" >"$dir/trade"
is "traded, its name in escapes" "HTTP/1.1 303 See Other" "$(head -n 1 "$dir/trade")"
is "for the address without it" "Location: /api/v1/executions?limit=1&q=a" "$(grep -i '^Location' "$dir/trade")"
is "and a cookie" "; Path=/; HttpOnly; SameSite=Strict" \
    "$(sed -n 's/^Set-Cookie: varve_[0-9]*=[0-9a-f]\{64\}//p' "$dir/trade")"
is "which is not the token" 0 "$(grep -c 0123456789abcdefgh "$dir/trade")"
cookie=$(sed -n 's/^Set-Cookie: \([^;]*\);.*/\1/p' "$dir/trade")
is "the cookie" 200 "$(code -H "Cookie: a=b; $cookie; c=d" "$url/api/v1")"
for wrong in "${cookie}0" "${cookie%?}" "x$cookie" "${cookie%%=*}=" "${cookie%%=*}=0123456789abcdefgh" "varve_1=${cookie#*=}"; do
    is "Cookie: ${wrong%%=*}=..." 401 "$(code -H "Cookie: $wrong" "$url/api/v1")"
done
is "no other host's address" "Location: /" "$(trade "$url//evil.example/?token=0123456789abcdefgh" | grep -i '^Location')"
is "a wrong token as a parameter" 401 "$(code "$url/?token=0123456789abcdefgi")"
is "beside a right one" 400 "$(code "$url/?token=0123456789abcdefgi&token=0123456789abcdefgh")"
is "of another host" 421 "$(code -H 'Host: evil.example' "$url/?token=0123456789abcdefgh")"
is "of another origin" 403 "$(code -H 'Origin: http://evil.example' "$url/?token=0123456789abcdefgh")"
mv "$log" "$log.1"
kill -HUP $server
renewed()
{
    code "${auth[@]}" "$url/api/v1" >/dev/null
    [ -s "$log" ]
}
until_true renewed
has "SIGHUP opens it anew" "GET /api/v1 200" "$(cat "$log")"
stop
is "it ends well" 0 $?
is "no token in all of the log, nor a cookie" 0 "$(cat "$log" "$log.1" | grep -cE '0123456789abcdef|[0-9a-f]{64}')"
# A log that nobody reads
mkfifo "$dir/pipe"
sleep 600 <"$dir/pipe" &
reader=$!
servers[$reader]=
begin "$varve" serve "$store" --listen 127.0.0.1:0 --log="$dir/pipe"
is "a stalled log holds up nobody" 6000 "$(python3 - "$url" <<'PYTHON'
import http.client, sys
c = http.client.HTTPConnection(sys.argv[1].split("//")[1], timeout=60)
good = 0
for i in range(6000):
    c.request("GET", "/api/v1?" + "x" * 60)
    r = c.getresponse()
    r.read()
    good += r.status == 400
print(good)
PYTHON
)"
told() { grep -q "^varve: log $1: $2; its lines are lost" "$dir/err"; }
until_true told "$dir/pipe" "nobody reads it, or too slowly"
ok "which is told"
stop
is "nor the end" 0 $?
kill $reader
wait $reader 2>/dev/null
unset "servers[$reader]"
if [ -c /dev/full ]; then
    begin "$varve" serve "$store" --listen 127.0.0.1:0 --log=/dev/full
    code "$url/api/v1" "$url/api/v1" >/dev/null
    until_true told /dev/full "No space left on device"
    ok "a log that can't be written is told of"
    code "$url/api/v1" >/dev/null
    stop
    is "once" "0 1" "$? $(grep -c "lines are lost" "$dir/err")"
    # What could not be written is counted where it can be again
    ln -s /dev/full "$dir/moved"
    begin "$varve" serve "$store" --listen 127.0.0.1:0 --log="$dir/moved"
    asked=0
    ask() { code "$url/api/v1" >/dev/null; asked=$((asked + 1)); }
    lost() { ask; grep -q '^# [1-9][0-9]* lines are lost$' "$dir/moved"; }
    whole() { [ "$(awk '/^#/ {n += $2; next} {n++} END {print n}' "$dir/moved")" = $asked ]; }
    ask
    until_true told "$dir/moved" "No space left on device"
    rm "$dir/moved"
    kill -HUP $server
    until_true lost
    until_true whole
    ok "lost lines are counted"
    stop
    is "and it ends well" 0 $?
fi
begin bash -c 'ulimit -f 2; exec "$@"' - "$varve" serve "$store" --listen 127.0.0.1:0 --log="$dir/short"
fill() { code "$url/api/v1?$(printf 'x%.0s' $(seq 600))" >/dev/null; told "$dir/short" "File too large"; }
until_true fill
is "a log that may not grow" "200 2048" "$(code "$url/api/v1/executions") $(stat -c %s "$dir/short")"
stop
is "nor is that the end" 0 $?
refused "a log that can't be opened" 5 "No such file" "$varve" serve "$store" --listen 127.0.0.1:0 --log="$dir/no/log"

# The end: answers that run are given, new ones refused; a second signal ends at once
cat >"$dir/tree.lua" <<'LUA'
local f, g
function f(n) if n > 0 then f(n - 1) g(n - 1) end end
function g(n) if n > 0 then f(n - 1) g(n - 1) end end
f(16)
LUA
env -u BAML_PROFILE BAML_PROFILE_DIR="$dir/tree/profiles-v1" "$top_builddir/varve-lua" "$dir/tree.lua"
cat >"$dir/slow.py" <<'PYTHON'
"""Takes the first bytes of a long answer and waits; once told, takes the rest and says how it ended."""
import socket, sys
host, port = sys.argv[1].split("//")[1].split(":")
kept = socket.create_connection((host, int(port)), 60)
request = "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n"
kept.sendall((request % "/api/v1").encode())
data = b""
while not data.endswith(b"]}"):
    data += kept.recv(65536)
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
s.settimeout(60)
s.connect((host, int(port)))
s.sendall((request % "/api/v1/flame?execution=latest&max_nodes=1000000&ids=1").encode())
first = s.recv(1000)
print("running", flush=True)
sys.stdin.readline()
kept.sendall((request % "/api/v1").encode())
print("kept", kept.recv(65536).split()[1].decode(), flush=True)
sys.stdin.readline()
total, end = len(first), first
try:
    while not end.endswith(b"\r\n0\r\n\r\n"):
        part = s.recv(65536)
        if not part:
            break
        total, end = total + len(part), (end + part)[-16:]
except OSError:
    pass
print("whole" if end.endswith(b"\r\n0\r\n\r\n") and total > 5000000 else "cut at %d" % total, flush=True)
PYTHON
refusing() { [ "$(code "$url/api/v1")" = 000 ]; }
for second in no yes; do
    begin "$varve" serve "$dir/tree/profiles-v1" --listen 127.0.0.1:0
    coproc SLOW { python3 "$dir/slow.py" "$url" 2>"$dir/slow.err"; }
    slow_pid=$!
    read -r said <&"${SLOW[0]}"
    is "an answer runs" running "$said"
    kill $server
    until_true refusing
    ok "new connections are refused"
    if [ $second = yes ]; then
        kill $server
        ended
        is "a second signal ends at once" 143 $?
    else
        echo >&"${SLOW[1]}"
        read -r said <&"${SLOW[0]}"
        is "so are further requests of a connection that is there" "kept 503" "$said"
        echo >&"${SLOW[1]}"
        read -r said <&"${SLOW[0]}"
        is "the answer that ran is given" whole "$said"
        ended
        is "and then it ends" 0 $?
    fi
    kill $slow_pid 2>/dev/null
    wait $slow_pid 2>/dev/null
done

echo "1..$n"
exit $failed
