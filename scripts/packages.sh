# Sourced by demo.sh and test.sh: which Debian packages each needs, and how they are installed.

build_packages="gcc make autoconf automake libtool pkg-config libc6-dev libssl-dev libmicrohttpd-dev libarchive-dev
libsqlite3-dev zlib1g-dev libzstd-dev libcjson-dev liblua5.4-dev"
demo_packages="lua-check lua-penlight lua-argparse ca-certificates"
test_packages="check clang libclang-rt-14-dev lua5.4 lua5.1 curl jq python3 python3-jsonschema nodejs npm chromium zip zstd procps util-linux"

# install_packages NAME...: installs what is missing, and says what it does. A command that is there by other means than a
# package (a newer Node.js, say) counts as present.
install_packages() {
    missing=
    for package in "$@"; do
        case $package in
        nodejs) command -v node >/dev/null && continue ;;
        npm) command -v npm >/dev/null && continue ;;
        python3 | clang | curl | jq | chromium) command -v "$package" >/dev/null && continue ;;
        esac
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
    done
    [ -n "$missing" ] || return 0
    if ! command -v apt-get >/dev/null; then
        echo "These packages are missing and there is no apt-get to install them:$missing" >&2
        return 1
    fi
    as_root=
    [ "$(id -u)" = 0 ] || as_root=sudo
    echo "Installing:$missing"
    export DEBIAN_FRONTEND=noninteractive
    $as_root apt-get update -qq || return 1
    # shellcheck disable=SC2086 # a list of words
    $as_root apt-get install -y -qq --no-install-recommends $missing >"${TMPDIR:-/tmp}/varve-apt.$$" 2>&1 || {
        cat "${TMPDIR:-/tmp}/varve-apt.$$" >&2
        rm -f "${TMPDIR:-/tmp}/varve-apt.$$"
        echo "apt-get could not install:$missing" >&2
        return 1
    }
    rm -f "${TMPDIR:-/tmp}/varve-apt.$$"
}

# configure_in DIR CONFIGURE-ARGUMENT...: configures (once, or again where the build files changed).
configure_in() {
    dir=$1
    shift
    if [ ! -x configure ] || [ configure.ac -nt configure ] || [ Makefile.am -nt Makefile.in ]; then
        autoreconf -fi >/dev/null 2>&1 || autoreconf -fi || return 1
    fi
    mkdir -p "$dir"
    (
        cd "$dir" || exit 1
        [ -f config.status ] && [ ! ../configure -nt config.status ] || ../configure -q "$@"
    )
}

# build_in DIR CONFIGURE-ARGUMENT...: configures and builds.
build_in() {
    configure_in "$@" || return 1
    make -C "$1" -s -j"$(nproc)" >"$1/make.log" 2>&1 || {
        tail -n 40 "$1/make.log" >&2
        echo "The build failed; the whole log is $1/make.log" >&2
        return 1
    }
}
