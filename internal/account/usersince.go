package account

import (
	"slices"
	"strings"
)

// since is the change of a user whom others may have changed since c.Was: only what differs
// from c.Was applies.
func (c UserChange) since(now User) UserChange {
	if c.Was == nil {
		return c
	}
	if c.Name != nil && strings.TrimSpace(*c.Name) == c.Was.Name {
		c.Name = nil
	}
	if c.Role != nil && *c.Role == c.Was.Role {
		c.Role = nil
	}
	if c.Rights != nil && !c.bringsRights() {
		given, taken := *c.Rights&^c.Was.Rights, c.Was.Rights&^*c.Rights
		rights := (now.Rights | given) &^ taken
		c.Rights = &rights
	}
	if c.Policies != nil {
		policies := policiesSince(now.Policies, c.Was.Policies, *c.Policies)
		c.Policies = &policies
	}
	return c
}

// bringsRights reports whether the rights are those of another role that was chosen.
func (c UserChange) bringsRights() bool {
	if c.Role == nil {
		return false
	}
	rights, _ := c.Role.Rights()
	return rights == *c.Rights
}

// policiesSince is ApplyDifference for policies, of which nil is all.
func policiesSince(now, was, wanted []string) []string {
	if (was == nil) != (wanted == nil) {
		return wanted
	}
	same := len(was) == len(wanted) && !slices.ContainsFunc(wanted, func(id string) bool { return !slices.Contains(was, id) })
	switch {
	case same:
		return now
	case now == nil:
		return wanted
	}
	return ApplyDifference(now, was, wanted)
}

// ApplyDifference returns now with what wanted has more than was, and without what it has
// less. The result is not nil.
func ApplyDifference(now, was, wanted []string) []string {
	next := []string{}
	for _, one := range now {
		if !slices.Contains(was, one) || slices.Contains(wanted, one) {
			next = append(next, one)
		}
	}
	for _, one := range wanted {
		if !slices.Contains(was, one) && !slices.Contains(next, one) {
			next = append(next, one)
		}
	}
	return next
}
