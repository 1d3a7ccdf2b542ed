#!/bin/sh
# Attach and detach under load: 10,000 rounds for the 60 seconds that a soak has by default.
set -u
test=tests/control/load_test
[ -x $test ] || { echo "no unit tests in this build"; exit 0; }
VV_DETACH_ROUNDS=$((${VV_SOAK_SECONDS:-60} * 167)) exec ./$test
