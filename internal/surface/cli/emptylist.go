package cli

import (
	"fmt"

	"github.com/alecthomas/kong"
)

// NoEmptyList refuses a flag that takes a list and was given an empty value, as from a script's
// variable that is not set. The command would take it for a flag that was not given, whose
// default is often everything: all networks, all policies, all types of events. Settings of the
// service may be empty, as their variables may: the default of a list there is none.
func NoEmptyList(chosen *kong.Context) error {
	for _, at := range chosen.Path {
		if f := at.Flag; f != nil && !at.Resolved && len(f.Envs) == 0 && f.IsSlice() && f.Target.Len() == 0 {
			return fmt.Errorf("--%s must not be empty: give a value, or leave the flag out", f.Name)
		}
	}
	return nil
}
