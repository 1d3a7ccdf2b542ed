# Sourced by tests that speak TAP: counts them, and says how each went. At the end: echo "1..$n"; exit $failed
n=0
failed=0

# ok NAME: the last command's status; is NAME WANT GOT; has NAME WANT TEXT
ok()
{
    local status=$?
    n=$((n + 1))
    if [ $status = 0 ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; failed=1; fi
}
is()
{
    n=$((n + 1))
    if [ "$2" = "$3" ]; then echo "ok $n - $1"; else
        echo "not ok $n - $1"; echo "# wanted: $2"; echo "# got: $3"; failed=1
    fi
}
has()
{
    n=$((n + 1))
    case $3 in *"$2"*) echo "ok $n - $1" ;; *)
        echo "not ok $n - $1"; echo "# wanted in it: $2"; echo "# got: ${3:0:400}"; failed=1
    esac
}
