# Sourced by the proofs: the shell blocks of the documentation (test/blocks).
# shellcheck shell=bash

# block PAGE NAME [EXPRESSION...] prints the block that has the comment "run: NAME" before it.
# Each expression of sed replaces a value that is the reader's own, which must be there.
block() {
	local page=$1 name=$2 text changed
	shift 2
	text=$(awk -v mark="<!-- run: $name -->" '
		inside && /^```$/ { exit }
		inside { print }
		/^```/ && before == mark { inside = 1 }
		{ before = $0 }' "$page")
	if [ -z "$text" ]; then
		echo "$page has no block with <!-- run: $name -->" >&2
		return 1
	fi
	for expression; do
		changed=$(sed "$expression" <<<"$text")
		if [ "$changed" = "$text" ]; then
			echo "the block $name of $page has nothing to replace with $expression" >&2
			return 1
		fi
		text=$changed
	done
	printf '%s\n' "$text"
}
