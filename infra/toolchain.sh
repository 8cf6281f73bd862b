#!/usr/bin/env bash
# What links fully static programs with DuckDB; sourced from the root of the repository.
# shellcheck disable=SC2034 # those who source it use the variables

# gcc finds mold there as ld. GNU ld fails to link DuckDB for arm64 (more than 32 KiB of GOT), and
# LLVM's lld links a program that crashes.
linker=$PWD/.cache/ld
mkdir -p "$linker"
mold=$(command -v mold)
[ "$(readlink "$linker/ld")" = "$mold" ] || ln -sfn "$mold" "$linker/ld" # another build may be linking by it

# DuckDB is C++. netgo and osusergo avoid the dynamic parts of the C library; the linker still warns
# of them. With arrow_json_stdlib, Arrow needs no JSON package beside the standard library's.
static_tags=netgo,osusergo,arrow_json_stdlib
static_ldflags="-linkmode external -extldflags '-static -B$linker'"

toolchain() { # toolchain ARCH: sets goarch, cc and cxx
    local host cross
    case $1 in
    arm64) goarch=arm64 cross=aarch64-linux-gnu ;;
    x86_64) goarch=amd64 cross=x86_64-linux-gnu ;;
    *)
        echo "build: unknown architecture $1: arm64 or x86_64" >&2
        return 2
        ;;
    esac
    cc=gcc cxx=g++
    host=$(uname -m)
    if [ "${host/aarch64/arm64}" != "$1" ]; then
        cc=$cross-gcc cxx=$cross-g++
    fi
}
