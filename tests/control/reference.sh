#!/bin/sh
# What the documents and the sources of the contract say of themselves.
set -u
src=${top_srcdir:-.}
work=$(mktemp) || exit 99
trap 'rm -f "$work"' EXIT
failed=0
echo 1..2
if tests/control/reference | diff -u "$src/docs/host-contract-reference.md" - >"$work"; then
    echo "ok 1 - the reference is that of the tables"
else
    echo "not ok 1 - the reference is that of the tables (run make contract-reference)"
    sed 's/^/# /' "$work" | head -n 60
    failed=1
fi
# Functions that touch the pointer to a profiler's callbacks: the one that reads it behind a pin, and two that set it.
awk '/^[a-z].*\(/ { name = $0 } /->iface_[^a-z]/ { print FILENAME ": " name }' "$src"/control/*.[ch] |
    sed 's/.*control\///; s/(.*//' | sort -u >"$work"
if [ "$(cat "$work")" = "events.c: static VV_INLINE inline const vv_iface *look_behind_pin
events.c: void vv_iface_clear
events.c: void vv_iface_set" ]; then
    echo "ok 2 - one function reads what leads to a profiler's callbacks"
else
    echo "not ok 2 - one function reads what leads to a profiler's callbacks"
    sed 's/^/# /' "$work"
    failed=1
fi
exit $failed
