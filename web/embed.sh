#!/bin/sh
# Prints web/assets.c: the dashboard's files as C arrays. Arguments: the source directory, then files below it.
set -eu
src=$1
shift

content_type()
{
    case $1 in
    *.html) echo 'text/html; charset=utf-8' ;;
    *.js) echo 'text/javascript; charset=utf-8' ;;
    *.css) echo 'text/css; charset=utf-8' ;;
    *.svg) echo 'image/svg+xml' ;;
    *.json) echo 'application/json' ;;
    *.png) echo 'image/png' ;;
    *) echo 'application/octet-stream' ;;
    esac
}

request_path()
{
    case $1 in
    web/index.html) echo / ;;
    *) echo "/${1#web/}" ;;
    esac
}

echo '/* Made by web/embed.sh. */'
echo '#include "config.h"'
echo
echo '#include "web/assets.h"'
n=0
for f; do
    echo
    echo "static const uint8_t bytes_$n[] = {"
    od -v -An -tx1 "$src/$f" | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g'
    echo '};'
    n=$((n + 1))
done
echo
echo 'const vv_asset vv_assets[] = {'
n=0
for f; do
    sum=$(sha256sum <"$src/$f")
    echo "    {\"$(request_path "$f")\", \"$(content_type "$f")\", bytes_$n, sizeof bytes_$n, \"${sum%% *}\"},"
    n=$((n + 1))
done
echo '    {0},'
echo '};'
echo 'const size_t vv_asset_count = sizeof vv_assets / sizeof vv_assets[0] - 1;'
