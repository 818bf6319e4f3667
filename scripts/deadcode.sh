#!/usr/bin/env bash
# deadcode.sh: fail if a function is in no program, scripts/deadcode.txt aside, or if
# a line of that file excuses nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
go -C tools build -o ../bin/ golang.org/x/tools/cmd/deadcode
module=$(go list -m)
bin/deadcode -f '{{range .Funcs}}{{printf "%s %s.%s\n" .Position $.Path .Name}}{{end}}' ./... |
	awk -v module="$module/" '
		NR == FNR { if ($1 != "#" && NF) excused[$1] = FNR; next }
		{
			name = $2
			sub("^" module, "", name)
			dead = 1
			for (start in excused) {
				next_one = substr(name, length(start) + 1, 1)
				if (index(name, start) == 1 && (next_one == "" || next_one == "." || next_one == "/")) { used[start] = 1; dead = 0 }
			}
			if (dead) { print $1 ": no program reaches " name ": delete it, or give a reason in scripts/deadcode.txt"; bad = 1 }
		}
		END {
			for (start in excused) if (!used[start]) {
				print "scripts/deadcode.txt:" excused[start] ": " start " is not dead: remove the line"
				bad = 1
			}
			exit bad
		}' scripts/deadcode.txt -
