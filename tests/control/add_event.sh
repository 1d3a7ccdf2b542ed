#!/bin/sh
# docs/adding-an-event.md, followed: one row in a copy of the table, and nothing else, gives the mask bit, the wrapper,
# the callback, the lines of the reference and the rows of the matrix. A row without its reasons does not compile.
set -u
src=${top_srcdir:-.} build=${top_builddir:-.}
cc=${CC:-cc}
n=0 failed=0
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
result() { # status description
    n=$((n + 1))
    if [ "$1" = 0 ]; then
        echo "ok $n - $2"
    else
        echo "not ok $n - $2"
        failed=1
        [ ! -s "$work/log" ] || head -n 20 "$work/log" | sed 's/^/# /'
    fi
}
if ! pkg-config --exists check; then
    echo "1..0 # SKIP check is not installed"
    exit 0
fi
mkdir -p "$work/tree/tests/control"
cp -R "$src/base" "$src/format" "$src/runtime" "$src/control" "$work/tree/" || exit 99
cp "$src/tests/testing.h" "$work/tree/tests/" || exit 99
cp "$src"/tests/control/fake.h "$src"/tests/control/zeros.h "$src"/tests/control/matrix_test.c \
    "$src"/tests/control/reference.c "$work/tree/tests/control/" || exit 99
chmod -R u+w "$work/tree"
header=$work/tree/control/varve-profiler.h
cp "$header" "$work/before.h"

# The row of docs/adding-an-event.md, put behind the last one. add_row REASON
add_row() {
    sed -n '/^```row$/,/^```$/p' "$src/docs/adding-an-event.md" | sed '1d;$d' >"$work/row"
    awk -v row="$work/row" -v reason="$1" '
        /^#define VARVE_HOST_EVENTS/ { inside = 1 }
        inside && !/\\$/ {
            print $0 " \\"
            while ((getline line <row) > 0) {
                if (reason != "") sub(/"[^"]*"\)/, "\"" reason "\")", line)
                print line
            }
            inside = 0
            next
        }
        { print }' "$work/before.h" >"$header"
}
build_control() { # output source...
    out=$1
    shift
    # shellcheck disable=SC2046 # lists of words
    $cc -std=gnu11 -O0 -w -DVV_CONTRACTS=1 -I"$work/tree" -I"$build" $(pkg-config --cflags check) \
        "$work"/tree/base/os_thread.c "$work"/tree/control/block.c "$work"/tree/control/contract.c "$work"/tree/control/detach.c \
        "$work"/tree/control/events.c "$work"/tree/control/gate.c "$work"/tree/control/host.c \
        "$work"/tree/control/info.c "$work"/tree/control/mapping.c "$work"/tree/control/table.c \
        "$@" -o "$out" $(pkg-config --libs check) -pthread >"$work/log" 2>&1
}

add_row ""
grep -q fuel_low "$header"
result $? "the row is in the copy"
build_control "$work/reference" "$work/tree/tests/control/reference.c"
result $? "the reference builds"
"$work/reference" >"$work/reference.md"
grep -q '^### fuel_low$' "$work/reference.md" && grep -q '`fuel_low(varve_thread_id thread, uint64_t units)`' \
    "$work/reference.md"
result $? "the reference has its line"
diff "$src/docs/host-contract-reference.md" "$work/reference.md" | grep -v '^>' | grep -q '^<'
[ $? = 1 ]
result $? "and nothing else of it has changed"
build_control "$work/matrix" "$work/tree/tests/control/matrix_test.c"
result $? "the matrix builds"
CK_FORK=yes "$work/matrix" >"$work/out" 2>"$work/cells"
result $? "the matrix holds"
grep -q '^# event fuel_low: 96 cells$' "$work/cells"
result $? "the matrix has its row"

cat >"$work/user.c" <<'END'
#include <stdio.h>
#include "control/varve-host.h"
static varve_thread_id told;
static uint64_t units_told;
static void on_init(void *me, varve_profiler *self, const varve_info *info, varve_load_kind kind, varve_code *ret)
{
    (void)me, (void)kind;
    *ret = info->set_event_mask(self, VARVE_ON_fuel_low);
}
static void on_fuel(void *me, varve_thread_id thread, uint64_t units)
{
    (void)me;
    told = thread;
    units_told = units;
}
int main(void)
{
    varve_callbacks c = {.size = sizeof c, .version = VARVE_CONTRACT_VERSION, .initialize = on_init,
                         .fuel_low = on_fuel};
    varve_host_options o = {.size = sizeof o, .version = VARVE_CONTRACT_VERSION, .supported = VARVE_ON_fuel_low,
                            .manual_detach = true};
    varve_attach_options a = {.size = sizeof a, .callbacks = &c};
    varve_host *host;
    varve_profiler *p;
    if (varve_host_open(&o, &host) != VARVE_OK || varve_host_attach(host, &a, &p) != VARVE_OK)
        return 1;
    VARVE_RAISE(host, fuel_low, 7, 99);
    return !(VARVE_ON_fuel_low == UINT64_C(1) << 40 && told == 7 && units_told == 99 && varve_host_close(host));
}
END
build_control "$work/user" "$work/user.c" && "$work/user"
result $? "the bit, the wrapper and the callback are there"

for reason in ' ' x; do
    add_row "$reason"
    ! build_control "$work/never" "$work/tree/tests/control/reference.c"
    result $? "a row with \"$reason\" for a reason does not compile"
done
grep -q 'a reason for each item that is not preferred' "$work/log"
result $? "and the compiler says why"
: >"$work/log"
echo "1..$n"
exit $failed
