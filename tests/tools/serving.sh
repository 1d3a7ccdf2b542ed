# Sourced by tests that speak TAP and run `varve serve`: $varve is the command, $dir a directory of their own.
. "$top_srcdir/tests/tools/tap.sh"
declare -A servers # those that were not waited for, by id

# start ARGUMENT...: a server at a free port; sets server and url. What it prints is in out and err of $dir.
start()
{
    : >"$dir/out" # or the address of the server before might be read
    "$varve" serve --listen 127.0.0.1:0 "$@" >"$dir/out" 2>"$dir/err" &
    server=$!
    servers[$server]=
    for _ in $(seq 600); do
        url=$(sed -n 's,^listening on \(.*\)/$,\1,p' "$dir/out")
        [ -n "$url" ] && return 0
        kill -0 $server 2>/dev/null || break
        sleep 0.05
    done
    echo "Bail out! the server did not start: $(cat "$dir/err")"
    exit 1
}

# ended: waits until $server has ended, and gives its status; stop [SIGNAL] ends it first.
ended()
{
    wait "$server" 2>/dev/null
    local status=$?
    unset "servers[$server]"
    server=
    return $status
}
stop()
{
    kill "-${1:-TERM}" "$server"
    ended
}

# For the trap at the end: no server stays.
stop_all()
{
    for server in "${!servers[@]}"; do kill "$server" 2>/dev/null; done
    wait 2>/dev/null
}
