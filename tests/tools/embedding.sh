#!/bin/bash
# What an embedder gets: the installed headers, library and pkg-config file, the examples built with nothing else, and
# docs/embedding.md, whose code is that of the examples. Speaks TAP.
set -u
: "${top_srcdir:?}" "${top_builddir:?}"
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
n=0
failed=0
# result STATUS DESCRIPTION [FILE]: of a command, with what it said.
result()
{
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else
        echo "not ok $n - $2"
        [ -z "${3-}" ] || sed 's/^/# /' "$3" | head -n 20
        failed=1
    fi
}
# none DESCRIPTION TEXT: there is nothing.
none()
{
    printf '%s\n' "$2" >"$dir/found"
    [ -z "$2" ]
    result $? "$1" "$dir/found"
}

# The library as it is installed.
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR
make -s -C "$top_builddir" install-libLTLIBRARIES install-includeHEADERS install-nodist_pkgconfigDATA \
    install-dist_examplesDATA prefix="$dir/usr" exec_prefix="$dir/usr" libdir="$dir/usr/lib" \
    includedir="$dir/usr/include" docdir="$dir/usr/doc" >"$dir/log" 2>&1
result $? "make install into a directory" "$dir/log"
library=$dir/usr/lib/libvarve.so
sanitizers=$(nm -D --undefined-only "$library" | sed -n 's/.* __\([at]\)san_init$/\1/p')
case $sanitizers in
a) flags="-fsanitize=address,undefined" ;;
t) flags="-fsanitize=thread" ;;
*) flags= ;;
esac

exported=$(nm -D --defined-only "$library" | awk '{ sub(/@.*/, "", $3); print $3 }')
none "libvarve exports varve_* and nothing else" "$(grep -v '^varve_' <<<"$exported")"
# Each function that the header has is there: its declarations begin with VARVE_API.
declared=$(tr '\n' ' ' <"$dir/usr/include/varve.h" | grep -o 'VARVE_API [^;]*(' | grep -o 'varve_[a-z0-9_]*(' |
    tr -d '(' | sort -u)
none "and all that varve.h declares" "$(comm -23 <(echo "$declared") <(sort -u <<<"$exported"))"
[ "$(wc -l <<<"$declared")" -gt 30 ]
result $? "varve.h declares functions"
none "libvarve links libc and libcrypto only" "$([ -n "$flags" ] ||
    readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
    grep -vE '^(libc|libcrypto|ld-linux[-a-z0-9_]*)\.so')"
none "no function of the allocator is libvarve's" "$(nm "$library" 2>/dev/null |
    grep -E ' [TtWi] (malloc|calloc|realloc|free|aligned_alloc|memalign|posix_memalign|valloc|pvalloc|reallocarray)$')"

# pkg-config tells all that is needed.
config()
{
    PKG_CONFIG_PATH=$dir/usr/lib/pkgconfig pkg-config --define-variable=prefix="$dir/usr" \
        --define-variable=exec_prefix="$dir/usr" --define-variable=libdir="$dir/usr/lib" \
        --define-variable=includedir="$dir/usr/include" "$@" varve
}
[ "$(config --libs)" = "-L$dir/usr/lib -lvarve " ] || [ "$(config --libs)" = "-L$dir/usr/lib -lvarve" ]
result $? "pkg-config --libs"
export LD_LIBRARY_PATH=$dir/usr/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} BAML_PROFILE_DIR=$dir/.baml/profiles-v1
examples=$dir/usr/doc/examples
# builds COMPILER FLAG...: $source from the installed files, without a warning.
builds()
{
    local compiler=$1
    shift
    # A compiler may be two words, flags are.
    # shellcheck disable=SC2046,SC2086
    $compiler "$@" -Wall -Wextra -Werror -pthread $flags -o "$dir/program" "$source" $(config --cflags --libs) \
        >"$dir/err" 2>&1
    result $? "$compiler builds $(basename "$source") ($1)" "$dir/err"
}
# runs ARGUMENT...: what was built prints nothing and leaves a store.
runs()
{
    rm -rf "$dir/.baml"
    "$dir/program" "$@" >"$dir/out" 2>&1
    result $? "it runs" "$dir/out"
    none "and prints nothing" "$(cat "$dir/out")"
    [ -d "$dir/.baml/profiles-v1/streams" ]
    result $? "and leaves a store"
}
# others COMPILER...: the ones that are there. None beside the build's where its sanitizer must be linked, too.
others()
{
    [ -n "$flags" ] || for other in "$@"; do
        case " ${CC:-cc} ${CXX:-g++} " in *" $other "*) continue ;; esac
        ! $other --version >/dev/null 2>&1 || echo "$other"
    done
}
mapfile -t compilers < <(echo "${CC:-cc}"; others gcc clang)
for compiler in "${compilers[@]}"; do
    source=$examples/plain.c
    for standard in c11 c17 c2x; do
        builds "$compiler" -std=$standard -pedantic
    done
    runs
    source=$examples/vm.c
    builds "$compiler" -std=gnu11 -O2
    runs "$examples/shop.vm"
done

# All headers at once in C++, and the example.
cat >"$dir/all.cc" <<'END'
#include <varve.h>
#include <varve-host.h>
#include <varve-profiler.h>
int main()
{
    varve_options o = varve_options();
    o.struct_size = sizeof o;
    varve_session *s = varve_session_open(&o);
    varve_engine_info info = varve_engine_info();
    info.roles = VARVE_ALL_ROLES;
    varve_engine *e = varve_engine_open(s, &info);
    varve_thread *t;
    varve_root *r = varve_root_begin(e, nullptr, &t);
    varve_function_info function = varve_function_info();
    function.fqn = "f";
    varve_policy policy = varve_policy();
    varve_local_id *id = varve_local_id_new();
    varve_local_id_capture(id, VARVE_SWITCH_ON, VARVE_SWITCH_ON, VARVE_SWITCH_KEEP);
    varve_local_id_consume(id, &policy);
    varve_call_begin_as(t, varve_function_add(e, &function), 0, varve_ticks(), &policy);
    if (varve_capture *c = varve_value_begin(t, VARVE_INPUT)) {
        varve_put_text(c, "x", 1);
        varve_capture_end(c);
    }
    varve_call_end(t, VARVE_CALL_OK);
    varve_thread_end(t, VARVE_THREAD_COMPLETED);
    varve_root_end(r, VARVE_SUCCEEDED);
    varve_local_id_unref(id);
    varve_log(nullptr, nullptr);
    varve_engine_close(e);
    varve_session_close(s);
    return 0;
}
END
case "$flags${CC:-cc}" in
-*clang) CXX=${CXX:-clang++} ;;
esac
mapfile -t compilers < <(echo "${CXX:-g++}"; others clang++)
for compiler in "${compilers[@]}"; do
    $compiler --version >/dev/null 2>&1 || continue
    for standard in c++11 c++17 c++20; do
        source=$dir/all.cc
        builds "$compiler" -std=$standard -pedantic
        runs
    done
    source=$examples/plain.cc
    builds "$compiler" -std=c++11 -pedantic
    runs
done

# The code that the documents show is in the examples, but for its indentation.
plain() { sed 's/^[[:space:]]*//' "$@"; }
code=$(plain "$top_srcdir"/examples/plain.c "$top_srcdir"/examples/plain.cc "$top_srcdir"/examples/vm.c)
for document in docs/embedding.md README.md; do
    block='' inside=0 blocks=0 missing=
    while IFS= read -r line; do
        case $inside$line in
        '0```c' | '0```c++') inside=1 block= ;;
        '1```')
            inside=0 blocks=$((blocks + 1))
            case $code in *"$block"*) ;; *) missing+=$block$'\n' ;; esac
            ;;
        1*) block+=$line$'\n' ;;
        esac
    done < <(plain "$top_srcdir/$document")
    none "$document: its $blocks pieces of code are in the examples" "$missing"
    [ $blocks -gt 0 ]
    result $? "$document has code"
done
echo "1..$n"
exit $failed
