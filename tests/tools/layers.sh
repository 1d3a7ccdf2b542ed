#!/bin/sh
# The rules of the house that a script can hold: what a folder may include, and what no file may contain.
set -u
cd "${top_srcdir:-.}" || exit 99
n=0
failed=0
# result DESCRIPTION FINDINGS: a test that passes where nothing was found.
result() {
    n=$((n + 1))
    if [ -z "$2" ]; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        printf '%s\n' "$2" | sed 's/^/# /'
        failed=1
    fi
}
sources() { find "$@" -type f \( -name '*.c' -o -name '*.h' \) | sort; }

# layer FOLDER LOWER...: includes with a folder in them name this one or a lower one (or one file).
layer() {
    folder=$1
    allowed=$(printf '%s' "$*" | tr ' ' '|')
    result "$folder/ includes nothing above it" "$(
        sources "$folder" | xargs grep -nE '^ *# *include *"[^"]+/' |
            grep -vE "include *\"($allowed)[/\"]"
    )"
}
layer base
layer format base
layer runtime base format
layer control base runtime
layer reader base format
layer index base format reader
layer views base format reader index
layer server base format reader index views web/assets.h
layer cli base format reader index views server runtime control
layer hosts
result "only server/http.c includes microhttpd.h" "$(
    sources base format runtime control reader index views server cli hosts | xargs grep -l '<microhttpd\.h>' | grep -vx server/http.c
)"
result "only index/ includes sqlite3.h" "$(
    sources base format runtime control reader views server cli hosts | xargs grep -l '<sqlite3\.h>'
)"
result "config.h comes first in each .c" "$(
    for f in $(sources base format runtime control reader index views server cli hosts | grep '\.c$'); do
        [ "$(grep -m 1 '^# *include' "$f")" = '#include "config.h"' ] || echo "$f"
    done
)"
result "each internal header has #pragma once" "$(
    sources base format runtime control reader index views server cli hosts | grep '\.h$' |
        grep -vxE 'runtime/varve\.h|control/varve-(host|profiler)\.h' |
        xargs grep -L '^#pragma once$'
)"
result "varve.h includes nothing of the house" "$(grep -n '^ *# *include *"' runtime/varve.h)"
all=$(find base format runtime control reader index views server cli hosts web bench examples fuzz docs tests scripts \
    -type f \( -name '*.[ch]' -o -name '*.js' -o -name '*.mjs' -o -name '*.css' -o -name '*.html' -o -name '*.sh' \
    -o -name '*.py' -o -name '*.lua' -o -name '*.md' \) ! -path tests/tools/layers.sh ! -path web/assets.c | sort)
result "no note to do something later" "$(printf '%s\n' "$all" | xargs grep -nwE 'TODO|FIXME|XXX' | grep -v 'XXXXXX')"
result "no path of one machine" "$(printf '%s\n' "$all" | xargs grep -nE '(^|[^A-Za-z0-9_.])/(home|root|work|wt|Users)/')"
result "no line of C or script is longer than 120 columns" "$(
    printf '%s\n' "$all" | grep -E '\.([ch]|js|mjs|py|lua)$' | xargs awk 'length > 120 { print FILENAME ":" FNR }'
)"
result "no file of C is longer than 800 lines" "$(
    for f in $(sources base format runtime control reader index views server cli hosts); do
        [ "$(wc -l <"$f")" -le 800 ] || echo "$f"
    done
)"
echo "1..$n"
exit $failed
