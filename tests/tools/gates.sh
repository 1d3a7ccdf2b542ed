#!/bin/sh
# Every test that docs/gates.md names exists.
set -u
cd "${top_srcdir:-.}" || exit 99
sed -n 's/^|.*| *`\([^`|]*\)`\(.*\) *|$/\1\2/p' docs/gates.md | tr -d ' `' | tr ',' '\n' | sort -u >"${TMPDIR:-/tmp}/gates.$$"
trap 'rm -f "${TMPDIR:-/tmp}/gates.$$"' EXIT
rows=$(grep -c '^| ' docs/gates.md)
named=$(grep -c '^| .*`tests/\|^| .*`bench/' docs/gates.md)
n=0
failed=0
result() { # status description
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; failed=1; fi
}
[ "$((rows - 1))" = "$named" ]
result $? "each of the $((rows - 1)) gates names a test"
while read -r test; do
    file=${test%%:*}
    case $test in
    *:*) grep -q "START_TEST(${test#*:})" "$file" 2>/dev/null ;;
    *) [ -f "$file" ] ;;
    esac
    result $? "$test"
done <"${TMPDIR:-/tmp}/gates.$$"
echo "1..$n"
exit $failed
