package cli

import (
	"fmt"

	"github.com/alecthomas/kong"
)

// NoEmptyList refuses a flag that takes a list and was given an empty value, as from a script's
// variable that is not set. The command would take it for a flag that was not given, whose
// default is often everything: all networks, all policies, all types of events.
func NoEmptyList(chosen *kong.Context) error {
	for _, at := range chosen.Path {
		if at.Flag != nil && !at.Resolved && at.Flag.IsSlice() && at.Flag.Target.Len() == 0 {
			return fmt.Errorf("--%s must not be empty: give a value, or leave the flag out", at.Flag.Name)
		}
	}
	return nil
}
