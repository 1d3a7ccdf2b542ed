#!/bin/bash
# The installed headers as strict C and C++, and the sample, without a warning. Speaks TAP.
set -u
src=${top_srcdir:?}
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
failed=0 n=0
cat >"$dir/use.c" <<'END'
#include "varve-host.h"
#include "varve-profiler.h"
#include "varve.h"
void use(varve_host *host, varve_domain_id domain);
void use(varve_host *host, varve_domain_id domain)
{
    if (!host)
        VARVE_RAISE(host, world_resumed);
    else
        VARVE_RAISE(host, domain_loaded, domain);
    VARVE_RAISE(host, call_entered, 1, 2, NULL, 0);
}
END
cp "$dir/use.c" "$dir/use.cc"
# strict COMPILER STANDARD FILE
strict()
{
    n=$((n + 1))
    # A compiler may be two words.
    # shellcheck disable=SC2086
    if $1 -std="$2" -Wall -Wextra -pedantic -Werror -I"$src/runtime" -I"$src/control" -c -o "$dir/use.o" "$3" \
        >"$dir/err" 2>&1; then
        echo "ok $n - $1 $2: $(basename "$3")"
    else
        echo "not ok $n - $1 $2: $(basename "$3")"
        sed 's/^/# /' "$dir/err" | head -n 20
        failed=1
    fi
}
for header in varve varve-profiler varve-host; do
    echo "#include \"$header.h\"" >"$dir/$header.cc"
    (echo "#include \"$header.h\""; echo "typedef int not_empty;") >"$dir/$header.c"
done
# The build's own compilers, and clang where it is there.
for compiler in "${CC:-cc}" clang; do
    $compiler --version >/dev/null 2>&1 || continue
    for standard in c11 c17 c2x; do
        for file in "$dir"/*.c; do
            strict "$compiler" $standard "$file"
        done
    done
    strict "$compiler" gnu11 "$src/examples/count.c"
done
for compiler in "${CXX:-c++}" clang++; do
    $compiler --version >/dev/null 2>&1 || continue
    for standard in c++11 c++17 c++20; do
        for file in "$dir"/*.cc; do
            strict "$compiler" $standard "$file"
        done
    done
done
echo "1..$n"
exit $failed
