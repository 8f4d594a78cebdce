#!/usr/bin/env bash
# Explores docs/model/ledger.pml, or a changed copy: check.sh [MODEL] [-DCRASHES=3]. Ends with 1 and a trail on a violation.
set -euo pipefail
model=$(realpath "${1:-$(dirname "${BASH_SOURCE[0]}")/ledger.pml}")
[ $# -eq 0 ] || shift
for tool in spin gcc; do
  command -v "$tool" >/dev/null || { echo "check.sh needs $tool (on Debian: apt-get install spin gcc)" >&2; exit 2; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
spin "$@" -a "$model" >spin.log || { cat spin.log; exit 2; }
gcc -O2 -w -DSAFETY -DVECTORSZ=2048 -o pan pan.c
./pan -m1000000 -w26 | grep -E 'errors:|states, stored|^pan:1'
for trail in *.trail; do
  [ -e "$trail" ] || break
  spin "$@" -p -t -k "$trail" "$model" | tail -40
  exit 1
done
