#!/usr/bin/env bash
# artifacts.sh USE...: fetches the files of artifacts.txt with one of the uses,
# compares each with its SHA-256, and prints their paths, one a line.
set -euo pipefail
cd "$(dirname "$0")"
repository=${MUSTER_MAVEN_REPOSITORY:-$HOME/.m2/repository}

# path GROUP:NAME:VERSION[:PACKAGING] is where Maven keeps the file.
path() {
	local group name version packaging
	IFS=: read -r group name version packaging <<<"$1"
	echo "$repository/${group//.//}/$name/$version/$name-$version.${packaging:-jar}"
}

while read -r use artifact sum; do
	[[ $use != '#'* && " $* " == *" $use "* ]] || continue
	file=$(path "$artifact")
	if [ ! -e "$file" ]; then
		echo "fetching $artifact" >&2
		mvn -q -B dependency:get "-Dmaven.repo.local=$repository" -Dtransitive=false "-Dartifact=$artifact" >&2
	fi
	if [ "$(sha256sum <"$file")" != "$sum  -" ]; then
		echo "cannot use $file: its SHA-256 is not the one in android/artifacts.txt; delete it and run this again" >&2
		exit 1
	fi
	echo "$file"
done <artifacts.txt
