#!/bin/sh
# Installs what is missing, builds Varve, records a real Lua program (luacheck over the sources of penlight), prints its top
# functions, and starts the dashboard. --no-serve stops after the recording.
set -u
cd "$(dirname "$0")" || exit 1
. scripts/packages.sh

serve=yes
case ${1-} in
--no-serve) serve=no ;;
"") ;;
*)
    echo "usage: ./demo.sh [--no-serve]" >&2
    exit 2
    ;;
esac

step() { printf '\n== %s\n' "$1"; }

step "Installing what is missing"
# shellcheck disable=SC2086 # lists of words
install_packages $build_packages $demo_packages || exit 1

step "Building in ./build"
build_in build || exit 1

step "Recording luacheck over penlight's sources into ./.baml"
export LUA_PATH="/usr/share/lua/5.4/?.lua;/usr/share/lua/5.4/?/init.lua;/usr/share/lua/5.1/?.lua;/usr/share/lua/5.1/?/init.lua;;"
export BAML_PROFILE_DIR="$PWD/.baml/profiles-v1" VARVE_STATUS=1
sources=/usr/share/lua/5.4/pl
[ -d "$sources" ] || sources=/usr/share/lua/5.1/pl
build/varve-lua /usr/bin/luacheck --no-color -q "$sources" | tail -n 1
unset BAML_PROFILE_DIR VARVE_STATUS

step "The run"
build/varve ls --store .baml || exit 1
echo "(failed, since luacheck exits with 1 where it has warnings to give)"

step "Its top functions by self time"
build/varve top latest --store .baml -n 12 || exit 1

if [ $serve = no ]; then
    printf '\nThe dashboard: build/varve serve --open\n'
    exit 0
fi
step "The dashboard (Ctrl-C stops it)"
exec build/varve serve .baml
