package cli

import "strings"

// JoinCursors writes `--after CURSOR` as `--after=CURSOR` where the cursor begins with one hyphen:
// it would be taken for a flag. No flag of one letter goes with --after in that place.
func JoinCursors(args []string) []string {
	const flag = "--after"
	joined := make([]string, 0, len(args))
	for i := 0; i < len(args); i++ {
		if args[i] == flag && i+1 < len(args) && len(args[i+1]) > len("-x") &&
			strings.HasPrefix(args[i+1], "-") && !strings.HasPrefix(args[i+1], "--") {
			joined = append(joined, flag+"="+args[i+1])
			i++
			continue
		}
		joined = append(joined, args[i])
	}
	return joined
}
