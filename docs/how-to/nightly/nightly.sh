#!/usr/bin/env bash
# Flag the cases of a day: nightly.sh 2026-11-18. A day may be run again at any time.
set -uo pipefail
cd "$(dirname "$0")"
day=${1:-$(date --date=yesterday +%F)}
cases="in/$day.csv"

if [ ! -e "in/$day.done" ]; then  # written by whoever delivers the table, after it
    echo "The table of $day is not complete yet." >&2
    exit 75
fi
if [ "$(wc -l < "$cases")" -le 1 ]; then
    echo "There were no cases on $day."
    exit 0
fi
shortlist check fraud.model "$cases" > "out/$day.check.txt"
drift=$?
if [ $drift -ne 0 ] && [ $drift -ne 5 ]; then exit $drift; fi
shortlist flag fraud.model "$cases" --at-most 90 -o "out/$day.csv" || exit $?
exit $drift  # 5: flagged within the limit, but somebody should look
