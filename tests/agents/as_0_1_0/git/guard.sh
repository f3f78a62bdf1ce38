#!/bin/sh
# Runs the queenbee guard with the Python that `queen guard install` ran with; made by it.
python='/opt/queenbee-0.1.0/bin/python3'
hook=$1
remote=$2
case $hook in
pre-push) set -- guard check --pre-push "$remote" ;;
*) set -- guard check --staged ;;
esac
status=97
if [ -x "$python" ]; then
    "$python" -P -c '
import sys
try:
    from queenbee.cli.main import main
except BaseException:
    sys.exit(97)
main()' "$@"
    status=$?
fi
if [ $status -eq 97 ] && command -v queen >/dev/null 2>&1; then
    queen "$@"
    status=$?
fi
# 97: queen is not there. Only an answer of queen stops git: held, wrong use, busy, unreadable.
case $status in
0 | 1 | 2 | 6 | 7 | 130) exit $status ;;
97) echo "queenbee guard: queen was not found, so nothing was checked" >&2 ;;
*) echo "queenbee guard: it failed with status $status, so nothing was checked" >&2 ;;
esac
exit 0
