# Runs a command as a sandbox like Codex's does: everything below a folder is read-only, except for
# the working directory and the folders that are named; its .git stays read-only.
#
#   unshare --user --map-root-user --mount sh sandbox.sh BASE CWD [WRITABLE...] -- COMMAND...
set -e
base=$1
cwd=$2
shift
mount --bind "$base" "$base"
mount -o remount,bind,ro "$base"
while [ "$1" != -- ]; do
    mount --bind "$1" "$1"
    mount -o remount,bind,rw "$1"
    shift
done
shift
mount --bind "$cwd/.git" "$cwd/.git"
mount -o remount,bind,ro "$cwd/.git"
cd "$cwd"
exec "$@"
