#!/bin/sh
# Fetches AWS's Lambda Runtime Interface Emulator from a Python wheel of 8 MB into a cache folder. A
# second run does nothing.
#
# usage: fetch-rie.sh [FOLDER]     default: .cache/rie in the repository
# The emulator is FOLDER/aws-lambda-rie afterwards. PYTHON names the interpreter, which must have
# pip.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here/../../.cache/rie}
python=${PYTHON:-python3}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
echo '*' >"$folder/.gitignore"
[ -x "$folder/aws-lambda-rie" ] && exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes -r "$here/rie.txt" -d "$work"
case $(uname -m) in
    aarch64 | arm64) arch=arm64 ;;
    *) arch=x86_64 ;;
esac
"$python" - "$work"/*.whl "samcli/local/rapid/aws-lambda-rie-$arch" "$work/rie" <<'PYTHON'
import sys
import zipfile

wheel, member, target = sys.argv[1:]
with zipfile.ZipFile(wheel) as z, open(target, "wb") as f:
    f.write(z.read(member))
PYTHON
chmod 755 "$work/rie"
mv "$work/rie" "$folder/aws-lambda-rie"
