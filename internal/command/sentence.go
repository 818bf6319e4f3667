package command

import "github.com/musterhq/muster/internal/activity"

// Sentence is an entry of the activity log for people, with the words of the commands.
func Sentence(e activity.Entry) activity.Sentence {
	return e.Tell(func(commandType string) (past, base, noun string) {
		row := Type(commandType).Row()
		return row.Past, row.Base, row.Noun
	})
}
