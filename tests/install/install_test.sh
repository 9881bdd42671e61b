#!/bin/sh
# install_test.sh CASE SOURCE BUILD WORK COMPILER   one case of tests/install; WORK/prefix is where Hone is installed by the case "prefix".
set -eu
case=$1 source=$2 build=$3 work=$4 compiler=$5
prefix=$work/prefix
consumer=$source/tests/install/consumer

# Trains, and shows where the library came from.
try() {
  rm -rf "${work:?}/$case/run"  # else it would have to be gone on with
  "$1" "$work/$case"
  ldd "$1" | grep libhone
}

# build_consumer FOLDER INTO ARGUMENT...   configures and builds a CMake project
build_consumer() {
  folder=$1 into=$2
  shift 2
  cmake -S "$folder" -B "$into" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$compiler" "$@"
  cmake --build "$into"
}

# Every include path and library of `hone.pc` in a prefix, as a user's Makefile has them.
compile_by_pkg_config() {
  export PKG_CONFIG_PATH=$1/lib/pkgconfig
  # shellcheck disable=SC2046
  "$compiler" -std=c++20 -O1 "$consumer/train.cc" -o "$work/$case/train" $(pkg-config --cflags --libs hone)
}

rm -rf "${work:?}/$case"
mkdir -p "$work/$case"
case $case in
  prefix)
    cmake --install "$build" --prefix "$prefix"
    ;;
  find_package)
    build_consumer "$consumer" "$work/$case/build" -DCMAKE_PREFIX_PATH="$prefix"
    try "$work/$case/build/train"
    ;;
  moved_prefix)
    cp -a "$prefix" "$work/$case/elsewhere"
    if grep -rlF -e "$prefix" -e "$build" "$work/$case/elsewhere/include" "$work/$case/elsewhere"/lib/cmake "$work/$case/elsewhere"/lib/pkgconfig; then
      echo "these files of an installed Hone name the folder that it was made in or installed to" >&2
      exit 1
    fi
    build_consumer "$consumer" "$work/$case/build" -DHone_DIR="$work/$case/elsewhere/lib/cmake/Hone"
    try "$work/$case/build/train" | grep -F "$work/$case/elsewhere/"
    compile_by_pkg_config "$work/$case/elsewhere"
    try "$work/$case/train" | grep -F "$work/$case/elsewhere/"
    ;;
  pkg_config)
    compile_by_pkg_config "$prefix"
    try "$work/$case/train"
    ;;
  headers)  # each alone, as the first thing that a program includes
    cd "$prefix/include/hone"
    find . -name '*.h' | sort >"$work/$case/list"
    grep -qx ./api/hone.h "$work/$case/list"
    while read -r header; do
      echo "#include \"${header#./}\"" >"$work/$case/alone.cc"
      "$compiler" -std=c++20 -Wall -Wextra -fsyntax-only -I. "$work/$case/alone.cc" || { echo "$header does not compile alone" >&2; exit 1; }
    done <"$work/$case/list"
    ;;
  tools)
    "$prefix/bin/hone-run" devices
    for tool in hone-compile hone-run hone-dump hone-opt; do "$prefix/bin/$tool" --version; done
    ;;
  subdirectory)  # with the flags of Hone's own build and in a folder beside it, so that a compiler cache has its objects
    into=$build-subdirectory
    rm -rf "$into"
    build_consumer "$source/tests/install/subdirectory" "$into" -DHONE_SOURCE="$source" -DHONE_WERROR=ON
    try "$into/train"
    rm -rf "$into"
    ;;
  *)
    echo "install_test.sh: no case $case" >&2
    exit 2
    ;;
esac
