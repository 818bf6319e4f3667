package operation

import "strings"

// SortOrder splits the value of a sort argument, such as "syncedAt,desc". Which
// values there are is the enum rule of the argument.
func SortOrder(text string) (field string, descending bool) {
	field, direction, _ := strings.Cut(text, ",")
	return field, direction == "desc"
}
